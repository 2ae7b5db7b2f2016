import assert from "node:assert/strict";
import type { SessionErrorCode } from "../../session/errors.ts";
import { createHeader } from "../../session/log/header.ts";
import { ID_CHARACTERS_MAX } from "../../session/limits.ts";
import type { Checkpoint } from "../../session/store.ts";
import { checkHeadIsFold } from "../check-head-is-fold.ts";
import type { StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";
import { entriesOf, make, refuses, unchanged } from "./store-checks.ts";
import { user } from "./drafts.ts";

const SESSION_IDS = [
  "",
  "../x",
  "a/b",
  "a\\b",
  "..",
  ".a",
  "a.",
  "-a",
  "a b",
  "a\0b",
  "a\n",
  "ä",
  "a:b",
  `a${"b".repeat(128)}`,
];
const NAMES = ["", "a\0b", "a\nb", "\u007f", "x".repeat(ID_CHARACTERS_MAX + 1), "\ud800", "a\udc00"];
const GOOD_NAMES = [
  "__proto__",
  "constructor",
  "toString",
  "user:bob",
  "a/../b",
  "' OR 1=1 --",
  "%_*?",
  "{a}",
  "ключ",
  "👍",
  " ",
  "x".repeat(ID_CHARACTERS_MAX),
];

/** Cases: valid and invalid ids. */
export const idCases: readonly StoreCase[] = [
  ...SESSION_IDS.map(
    (id): StoreCase => ({
      name: `refuses ${nameOf(id)} as a session's id in every method`,
      async run({ store }) {
        await make(store, "a");
        const header = { ...createHeader(), id };
        const calls: readonly (() => unknown)[] = [
          () => store.create(header),
          () => store.fork("a", header),
          () => store.fork(id, createHeader()),
          () => store.head(id),
          () => entriesOf(store, id),
          () => store.append(id, [user("x")]),
          () => store.append(id, []),
          () => store.getEntry(id, "x"),
          () => store.path(id, "x"),
          () => store.delete(id),
          () => store.undelete(id),
          () => store.listCheckpoints(id),
          () => store.lease(id, "run", 1000),
          () => store.leaseOf(id),
          () => store.watch(id)[Symbol.asyncIterator]().next(),
          () => store.list({ parentId: id }),
          () => store.saveCheckpoint(checkpoint("c", id)),
        ];
        for (const call of calls) await refuses(call, "INVALID_ID");
        assert.equal(await store.count(), 1);
      },
    }),
  ),
  {
    name: "refuses names that are empty or too long, or contain control characters or lone surrogates",
    async run({ store }) {
      await makeThree(store);
      for (const name of NAMES) {
        const calls: readonly [() => unknown, SessionErrorCode][] = [
          [() => store.append("a", [user("x", { id: name })]), "INVALID_ID"],
          [() => store.append("a", [user("x")], { onto: name }), "INVALID_ID"],
          [() => store.append("a", [{ type: "label", targetId: name, label: "x" }]), "INVALID_ENTRY"],
          [() => store.create({ ...createHeader(), userId: name }), "INVALID_ID"],
          [() => store.list({ userId: name }), "INVALID_ID"],
          [() => store.getEntry("a", name), "INVALID_ID"],
          [() => store.path("a", name), "INVALID_ID"],
          [() => store.fork("a", createHeader(), { at: name }), "INVALID_ID"],
          [() => store.lease("a", name, 1000), "INVALID_ID"],
          [() => store.saveCheckpoint(checkpoint(name, "a")), "INVALID_ID"],
          [() => store.loadCheckpoint(name), "INVALID_ID"],
          [() => store.deleteCheckpoint(name), "INVALID_ID"],
        ];
        for (const [call, code] of calls) await unchanged(store, "a", () => refuses(call, code));
      }
      assert.equal(await store.count(), 1);
    },
  },
  {
    name: "keeps entries, users, runs and checkpoints apart, whatever characters their ids contain",
    async run({ store }) {
      await make(store, "a");
      for (const name of GOOD_NAMES) {
        assert.equal(await store.getEntry("a", name), null);
        assert.equal(await store.count({ userId: name }), 0);
        assert.equal(await store.loadCheckpoint(name), null);
      }
      for (const [index, name] of GOOD_NAMES.entries()) {
        await make(store, `s${index}`, { userId: name });
        await store.append("a", [user(name, { id: name })]);
        await store.saveCheckpoint(checkpoint(name, "a"));
        await using lease = await store.lease(`s${index}`, name, 60_000);
        assert.equal((await store.leaseOf(`s${index}`))?.runId, lease.runId);
      }
      for (const [index, name] of GOOD_NAMES.entries()) {
        const entry = await store.getEntry("a", name);
        assert.deepEqual([entry?.id, entry?.seq, entry?.parentId], [name, index, GOOD_NAMES[index - 1] ?? null]);
        assert.equal((await store.path("a", name))?.depth, index + 1);
        assert.deepEqual(
          (await store.list({ userId: name })).items.map(({ header }) => header.id),
          [`s${index}`],
        );
        assert.equal((await store.loadCheckpoint(name))?.id, name);
      }
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "accepts a session id of the maximum length, and distinguishes ids that differ in case only",
    async run({ store }) {
      const longest = `a${"-".repeat(126)}z`;
      for (const id of [longest, "CASE", "case", "Case", "con", "a.b", "a_b", "0"]) {
        await make(store, id);
        await store.append(id, [user(id)]);
      }
      for (const id of [longest, "CASE", "case", "Case", "con", "a.b", "a_b", "0"]) {
        const [entry] = await entriesOf(store, id);
        assert.equal(entry?.type === "message" && entry.message.content, id);
      }
      assert.equal(await store.count(), 8);
    },
  },
];

function nameOf(id: string): string {
  return id.length > 20 ? `an id of ${id.length} characters` : JSON.stringify(id);
}

function checkpoint(id: string, sessionId: string): Checkpoint {
  const createdAt = "2024-01-01T00:00:00.000Z";
  return { id, sessionId, version: 0, leafId: null, createdAt, parentCheckpointId: null, metadata: {} };
}
