import fc from "fast-check";
import { expect, test } from "vitest";
import { sameJson } from "../../internal/json.ts";
import { fromJsonb, toJsonb } from "./jsonb-text.ts";

/** Texts made of what is dangerous: NUL, halves of pairs, the mark, backslashes, and what looks like an escape. */
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

test("brings every text back as it was, as a key and as a value", () => {
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

test("leaves nothing in it that jsonb refuses", () => {
  fc.assert(
    fc.property(text, (value) => {
      const kept = JSON.parse(toJsonb(JSON.stringify(value))) as string;
      expect(kept).not.toContain("\0");
      expect(Buffer.from(kept).toString()).toBe(kept);
    }),
  );
});
