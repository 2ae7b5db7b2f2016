import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { INDEX_FOLDER } from "./file-names.ts";
import { openJsonlStore } from "./jsonl-store.ts";

const said = (id: string): EntryDraft => ({ type: "message", id, message: { role: "user", content: `é ${id}` } });
const entries: readonly EntryDraft[] = [
  said("a"),
  ...Array.from(
    { length: 7 },
    (_, i): EntryDraft => ({ type: "variables", id: `v${i}`, set: { [`k${i}`]: i }, unset: [] }),
  ),
  said("b"),
  { type: "leaf", id: "back", targetId: "v5" },
  said("c"),
  { type: "session_info", id: "name", name: "Talk" },
  { type: "run", id: "run", runId: "r", phase: "started" },
];

/** Entries of 40 MB, which are written in several pieces. */
const large = Array.from({ length: 40 }, (_, index): EntryDraft => {
  return { type: "message", id: `e${index}`, message: { role: "user", content: "x".repeat(1024 * 1024) } };
});

/** The head, paths and settings that a store returns for the session. */
async function stateIn(store: SessionStore) {
  const head = await store.head("s");
  const paths = [];
  for (const id of ["a", "v3", "b", "c", "name"]) paths.push(await store.path("s", id));
  const settings = head === null ? null : await store.settings("s", head.path);
  return { head, paths, settings };
}

test("a session created with entries has the same state in the store that created it and in one that reads its file", async () => {
  const directory = mkdtempSync(join(tmpdir(), "skein-made-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  await using store = await openJsonlStore({ directory });
  const made = await store.create(createHeader({ id: "s" }), { entries });
  const fork = await store.fork("s", createHeader({ id: "fork" }));
  await using other = await openJsonlStore({ directory });
  expect(await store.settings("fork", fork.path)).toEqual(await other.settings("s", made.path));
  expect(made).toEqual(await other.head("s"));
  expect(made.openRuns).toHaveLength(1);
  expect(await stateIn(store)).toEqual(await stateIn(other));
  await store.append("s", [{ type: "variables", id: "last", set: { k6: "new" }, unset: ["k0"] }, said("d")]);
  await other.append("s", [said("e")], { onto: "b" });
  expect(await stateIn(store)).toEqual(await stateIn(other));
  expect((await stateIn(store)).settings?.variables).toEqual({ k1: 1, k2: 2, k3: 3, k4: 4, k5: 5, k6: "new" });
});

test("a small session is created while a large one is still being written", async () => {
  const directory = mkdtempSync(join(tmpdir(), "skein-made-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  await using store = await openJsonlStore({ directory });
  const made: string[] = [];
  const make = async (id: string, drafts: readonly EntryDraft[]): Promise<void> => {
    await store.create(createHeader({ id }), { entries: drafts });
    made.push(id);
  };
  await Promise.all([make("large", large), make("small", entries)]);
  expect(made).toEqual(["small", "large"]);
  await using other = await openJsonlStore({ directory });
  expect((await other.head("large"))?.version).toBe(40);
});

test("closing a store waits for the session that it is writing", async () => {
  const directory = mkdtempSync(join(tmpdir(), "skein-made-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const store = await openJsonlStore({ directory });
  const made: string[] = [];
  const making = store.create(createHeader({ id: "large" }), { entries: large }).then(() => made.push("made"));
  // The store has begun to write.
  await new Promise((resolve) => setImmediate(resolve));
  await store.close();
  made.push("closed");
  await making;
  expect(made).toEqual(["made", "closed"]);
  expect(readdirSync(join(directory, INDEX_FOLDER)).filter((name) => name.endsWith(".lock"))).toEqual([]);
});
