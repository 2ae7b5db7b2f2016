import fc from "fast-check";
import { expect, test } from "vitest";
import { sameJson } from "../../internal/json.ts";
import { fromJsonb, toJsonb } from "./jsonb-text.ts";

/** Texts of dangerous parts: NUL, halves of surrogate pairs, the escape character, backslashes, and text that looks like an escape. */
const text = fc
  .array(
    fc.constantFrom(
      "\0",
      "\ud83d",
      "\ude00",
      "\uffff",
      "\\",
      "u0000",
      "\\u0000",
      "0000",
      "d800",
      "ffff",
      '"',
      "é",
      "a",
      "\n",
    ),
  )
  .map((parts) => parts.join(""));

test("decodes every text to the original, as a key and as a value", () => {
  fc.assert(
    fc.property(
      fc.dictionary(text, fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.array(text))),
      (value) => {
        const json = JSON.stringify(value);
        expect(sameJson(fromJsonb(toJsonb(json)), JSON.parse(json))).toBe(true);
      },
    ),
  );
});

test("encodes every text without characters that jsonb refuses", () => {
  fc.assert(
    fc.property(text, (value) => {
      const encoded = JSON.parse(toJsonb(JSON.stringify(value))) as string;
      expect(encoded).not.toContain("\0");
      expect(Buffer.from(encoded).toString()).toBe(encoded);
    }),
  );
});
