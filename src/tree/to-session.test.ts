import { expect, test } from "vitest";
import { assistant, calls, user, usage } from "../../test/sample-log.ts";
import { createHeader } from "../session/log/header.ts";
import { registerSandboxBackend } from "../session/sandbox/sandbox-backends.ts";
import type { ReadOptions, SessionStore } from "../session/store.ts";
import { Transcript } from "../session/value/transcript.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { SessionTree } from "../index.ts";

test("has the rows of the active path with the ids of their entries, the lineage, usage and cost", async () => {
  const store = openMemoryStore();
  const lineage = { parents: ["p"], operator: "x", kind: "op_fork", extras: [] } as const;
  await store.create(createHeader({ id: "a", lineage }));
  const tree = await SessionTree.on(store, "a");
  await tree.appendMessage(user("one"), { id: "one" });
  await tree.appendMessage(assistant("left", { usage: usage(100), cost: 9 }), { id: "left" });
  await tree.branch("one");
  await tree.setSettings({ systemPrompt: "be brief" });
  await tree.appendMessage(assistant("two", { usage: usage(3, 4), cost: 0.5 }), { id: "two" });
  await tree.appendCustomMessage({ customType: "note", content: "three", display: false });
  const session = await tree.toSession();
  expect(session).toMatchObject({ id: "a", lineage, usage: usage(3, 4), cost: 0.5, sandboxBackend: null });
  expect(session.transcript.rows.map(({ id, message }) => [id, message.content])).toEqual([
    ["one", "one"],
    ["two", "two"],
    [tree.leafId, "three"],
  ]);
  expect(Transcript.originOf(session.transcript)).toEqual({ store, sessionId: "a", entryId: tree.leafId, length: 3 });
});

test("keeps a tool call without a result, and adds no made-up result", async () => {
  const tree = await SessionTree.inMemory();
  await tree.appendMessage(user("go"));
  await tree.appendMessage(calls("c1"));
  expect((await tree.toSession()).transcript.toMessages()).toEqual([user("go"), calls("c1")]);
});

test("an empty tree gives an empty session without usage", async () => {
  const tree = await SessionTree.inMemory();
  const session = await tree.toSession();
  expect([session.id, session.transcript.length, session.usage, session.cost]).toEqual([tree.id, 0, null, null]);
  expect(Transcript.originOf(session.transcript)).toBeNull();
});

test("begins with the summary of a compaction, and does not read the entries before the context", async () => {
  const memory = openMemoryStore();
  await memory.create(createHeader({ id: "a" }), {
    entries: Array.from({ length: 5000 }, (_, i) => ({ type: "message", id: `m${i}`, message: user(`${i}`) }) as const),
  });
  await memory.append("a", [
    { type: "compaction", id: "c", summary: "so far", firstKeptEntryId: "m4998", tokensBefore: 1 },
    { type: "message", id: "after", message: user("after") },
  ]);
  const { store, readCount } = counting(memory);
  const session = await (await SessionTree.on(store, "a")).toSession();
  expect(session.transcript.rows.map(({ id }) => id)).toEqual(["c", "m4998", "m4999", "after"]);
  expect(session.transcript.at(0)?.message).toMatchObject({ role: "user", content: expect.stringContaining("so far") });
  expect(readCount()).toBeLessThan(100);
});

test("has the recorded sandbox only if this program has its backend", async () => {
  registerSandboxBackend("to-session-test", () => {
    throw new Error("never opened");
  });
  const store = openMemoryStore();
  const sandbox = { backend: "to-session-test", spec: { workingDir: "/w" }, handleId: "h" };
  await store.create(createHeader({ id: "known", sandbox }));
  await store.create(createHeader({ id: "unknown", sandbox: { ...sandbox, backend: "nobody-has-this" } }));
  expect((await (await SessionTree.on(store, "known")).toSession()).sandboxPlacement).toEqual(sandbox);
  expect((await (await SessionTree.on(store, "unknown")).toSession()).sandboxPlacement).toBeNull();
});

/** A store that counts the entries that are read from it. */
function counting(inner: SessionStore): { store: SessionStore; readCount: () => number } {
  let count = 0;
  async function* read(sessionId: string, options?: ReadOptions) {
    for await (const entry of inner.read(sessionId, options)) {
      count += 1;
      yield entry;
    }
  }
  const store = new Proxy(inner, {
    get: (target, key) => {
      if (key === "read") return read;
      const value = Reflect.get(target, key) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { store, readCount: () => count };
}
