import { expect, test } from "vitest";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import { openMemoryStore } from "./index.ts";

const said = (id: string): EntryDraft => ({ type: "message", id, message: { role: "user", content: id } });

test("a fork of a fork has the entries before each fork point, none of the later ones, and keeps them when its sources are purged", async () => {
  const store = openMemoryStore();
  const idsOf = async (sessionId: string): Promise<string[]> => {
    const ids: string[] = [];
    for await (const { id } of store.read(sessionId)) ids.push(id);
    return ids;
  };
  await store.create(createHeader({ id: "first" }), { entries: ["a", "b", "c"].map(said) });
  await store.fork("first", createHeader({ id: "second" }));
  await store.append("second", [said("d")]);
  await store.append("first", [said("d"), said("e")]);
  await store.fork("second", createHeader({ id: "third" }), { at: "a" });
  await store.append("third", [said("c"), said("f"), said("g")]);
  for (const id of ["b", "d", "e"]) expect(await store.getEntry("third", id)).toBeNull();
  expect((await store.getEntry("third", "c"))?.seq).toBe(1);
  for (const sessionId of ["first", "second"]) {
    await store.delete(sessionId);
    expect(await store.purge({ sessionId })).toBe(1);
  }
  expect(await idsOf("third")).toEqual(["a", "c", "f", "g"]);
});
