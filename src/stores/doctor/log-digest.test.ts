import { expect, test } from "vitest";
import { createHeader } from "../../session/log/header.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { canonicalJson, digestOf } from "./log-digest.ts";
import { openMemoryStore } from "../memory/index.ts";

const time = "2024-01-01T00:00:00.000Z";
const first: EntryDraft = { id: "a", timestamp: time, type: "message", message: { role: "user", content: "hello" } };
const second: EntryDraft = { id: "b", timestamp: time, type: "custom", customType: "t", data: { x: 1, y: [2] } };

async function digest(entries: readonly EntryDraft[], init: Partial<SessionHeader> = {}): Promise<string | undefined> {
  await using store = openMemoryStore();
  await store.create(createHeader({ id: "s", createdAt: time, ...init }), { entries });
  return (await digestOf(store, "s"))?.digest;
}

test("the digest of a log does not depend on the order of keys", async () => {
  const turned: EntryDraft = { data: { y: [2], x: 1 }, customType: "t", type: "custom", timestamp: time, id: "b" };
  expect(await digest([first, turned])).toBe(await digest([first, second]));
  expect(await digest([first, second])).toMatch(/^[0-9a-f]{64}$/);
});

test("the digest changes with every part of the log", async () => {
  const others: (readonly [readonly EntryDraft[], Partial<SessionHeader>?])[] = [
    [[first, second]],
    [[first]],
    [[second, first]],
    [[{ ...first, id: "c" }, second]],
    [[first, { ...second, timestamp: "2024-01-01T00:00:00.001Z" }]],
    [[first, { ...second, parentId: null }]],
    [[first, { ...second, data: { x: 1, y: ["2"] } } as EntryDraft]],
    [[first, second], { userId: "ann" }],
  ];
  const digests = await Promise.all(others.map(([entries, init]) => digest(entries, init)));
  expect(new Set(digests).size).toBe(others.length);
});

test("the digest covers the requested number of entries, and is null for a missing session", async () => {
  await using store = openMemoryStore();
  await store.create(createHeader({ id: "s", createdAt: time }), { entries: [first, second] });
  expect(await digestOf(store, "s", { version: 1 })).toEqual({ version: 1, digest: await digest([first]) });
  expect(await digestOf(store, "nothing")).toBeNull();
});

test("different values have different canonical JSON", () => {
  const values = [null, "null", 0, "0", false, [], {}, [[]], [null], { a: null }, "\ud800", "\udc00", { "": "" }, ""];
  expect(new Set(values.map(canonicalJson)).size).toBe(values.length);
  expect(canonicalJson({ b: 1, a: undefined })).toBe('{"b":1}');
});
