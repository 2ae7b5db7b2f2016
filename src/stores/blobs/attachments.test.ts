import fc from "fast-check";
import { expect, test } from "vitest";
import { createHeader } from "../../session/log/header.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createStore } from "../complete/create-store.ts";
import { digestOf } from "../doctor/log-digest.ts";
import { MemoryDriver } from "../memory/memory-driver.ts";
import { exactBytes } from "./attachments.ts";

/** Texts that are base64, and such texts with a changed character. */
const almostBase64 = fc
  .tuple(fc.uint8Array({ maxLength: 40 }), fc.option(fc.nat(60)), fc.constantFrom(..."AQw=-_+/ \n\u0141\u00e9"))
  .map(([bytes, at, character]) => {
    const text = Buffer.from(bytes).toString("base64");
    return at === null || at >= text.length ? text : text.slice(0, at) + character + text.slice(at + 1);
  });

test("a text counts as base64 only if its bytes give the same text back", () => {
  fc.assert(
    fc.property(almostBase64, (text) => {
      const bytes = Buffer.from(text, "base64");
      const isExact = text !== "" && bytes.toString("base64") === text;
      expect(exactBytes(text)).toEqual(isExact ? bytes : null);
    }),
    { numRuns: 5000 },
  );
});

test("logs that were stored with different limits for inline data have the same digest, and a repeated append is the same", async () => {
  const texts = [3, 45, 48, 600, 5000].map((length) => Buffer.alloc(length, "skein").toString("base64"));
  const timestamp = "2026-01-02T03:04:05.678Z";
  const image = (data: string) => ({ type: "image", mediaType: "image/png", data }) as const;
  const drafts: readonly EntryDraft[] = [
    { type: "message", id: "1", timestamp, message: { role: "user", content: texts.map(image) } },
    {
      type: "message",
      id: "2",
      timestamp,
      message: { role: "assistant", content: "", providerData: [{ type: "text" }, ...texts] },
    },
    { type: "custom", id: "3", timestamp, customType: "foreign.codex", data: { line: texts.join(" ") } },
  ];
  const digests = [];
  for (const inlineMax of [0, 10, 4096, 1_000_000]) {
    const driver = new MemoryDriver(() => new Date());
    await using store = createStore(driver, { inlineMax });
    await store.create(createHeader({ id: "a", createdAt: timestamp }));
    const { entries } = await store.append("a", drafts);
    digests.push((await digestOf(store, "a"))?.digest);
    for (const other of [0, 4096, 1_000_000]) {
      const again = createStore(driver, { inlineMax: other });
      expect((await again.append("a", drafts)).entries).toEqual(entries);
    }
    expect((await store.head("a"))?.version).toBe(3);
  }
  expect(new Set(digests).size).toBe(1);
});
