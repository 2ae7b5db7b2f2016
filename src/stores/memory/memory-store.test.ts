import { expect, test } from "vitest";
import { giveDraft, type WholeDraft } from "../../session/log/draft.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import { checkHeadIsFold } from "../../testing/index.ts";
import { openMemoryStore } from "./memory-store.ts";

test("holds a chain of a thousand forks, and the head of each is the fold of its log", async () => {
  const store = openMemoryStore();
  await store.create(createHeader({ id: "s0" }));
  await store.append("s0", [message("root")]);
  for (let i = 1; i <= 1000; i++) {
    await store.fork(`s${i - 1}`, createHeader({ id: `s${i}` }));
    await store.append(`s${i}`, [message(`e${i}`)]);
  }
  await checkHeadIsFold(store, "s1000");
  const head = await store.fork("s1000", createHeader({ id: "early" }), { at: "e500" });
  expect(head).toMatchObject({ version: 501, leafId: "e500", path: { turnCount: 501 } });
  await checkHeadIsFold(store, "early");
});

test("freezes a draft that was handed over and not copied", async () => {
  const store = openMemoryStore();
  const said = { role: "user", content: [{ type: "text", text: "hi" }] } as const;
  const timestamp = "2024-01-01T00:00:00.000Z";
  const draft: WholeDraft = { id: "a", parentId: null, timestamp, type: "message", message: said };
  giveDraft(draft);
  await store.create(createHeader({ id: "s" }), { entries: [draft] });
  expect(() => Object.assign(said.content[0], { text: "ho" })).toThrow(TypeError);
});

test("forks at any position inside of one large append", async () => {
  const store = openMemoryStore();
  const entries = Array.from({ length: 1000 }, (_, i) =>
    i % 50 === 49 ? leaf(`e${i}`, `e${i - 9}`) : message(`e${i}`),
  );
  await store.create(createHeader({ id: "a" }), { entries });
  for (const at of [700, 63, 64, 65, 128, 699, 701, 999, 0]) {
    await store.fork("a", createHeader({ id: `at-${at}` }), { at: `e${at}` });
    await checkHeadIsFold(store, `at-${at}`);
  }
});

test("appends to a session do not reach its forks, nor appends to a fork its source, in any order", async () => {
  const store = openMemoryStore();
  await store.create(createHeader({ id: "a" }), { entries: [message("1"), message("2")] });
  await store.fork("a", createHeader({ id: "end" }));
  await store.fork("a", createHeader({ id: "middle" }), { at: "1" });
  for (const id of ["end", "a", "middle"]) await store.append(id, [message(`of-${id}`)]);
  for (const [id, ids] of Object.entries({
    a: ["1", "2", "of-a"],
    end: ["1", "2", "of-end"],
    middle: ["1", "of-middle"],
  })) {
    const read: string[] = [];
    for await (const entry of store.read(id)) read.push(entry.id);
    expect(read).toEqual(ids);
    expect(await store.getEntry(id, id === "a" ? "of-end" : "of-a")).toBeNull();
    await checkHeadIsFold(store, id);
  }
});

test("a purged session yields no further entries to its readers, and its forks keep the entries that they share with it", async () => {
  const store = openMemoryStore();
  await store.create(createHeader({ id: "a" }));
  const entries = Array.from({ length: 200 }, (_, i) => message(`e${i}`));
  for (const entry of entries) await store.append("a", [entry]);
  await store.fork("a", createHeader({ id: "f" }), { at: "e99" });
  const reader = store.read("a", { after: 97 })[Symbol.asyncIterator]();
  await reader.next();
  await store.delete("a");
  await store.purge("9999-01-01T00:00:00.000Z");
  expect((await reader.next()).done).toBe(true);
  await checkHeadIsFold(store, "f");
  await store.fork("f", createHeader({ id: "g" }), { at: "e70" });
  await checkHeadIsFold(store, "g");
});

test("uses the clock of its options for all times", async () => {
  const now = "2030-01-02T03:04:05.006Z";
  const store = openMemoryStore({ clock: () => new Date(now) });
  await store.create(createHeader({ id: "a" }));
  const { entries, head } = await store.append("a", [message("1")]);
  expect([entries[0]?.timestamp, head.updatedAt, head.modifiedAt]).toEqual([now, now, now]);
  const lease = await store.lease("a", "run", 1000);
  expect(lease.expiresAt).toBe("2030-01-02T03:04:06.006Z");
});

function message(id: string): EntryDraft {
  return { id, type: "message", message: { role: "user", content: "hello" } };
}

function leaf(id: string, targetId: string): EntryDraft {
  return { id, type: "leaf", targetId };
}
