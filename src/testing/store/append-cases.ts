import assert from "node:assert/strict";
import type { EntryDraft } from "../../session/log/entry.ts";
import type { SessionStore } from "../../session/store.ts";
import { checkHeadIsFold } from "../check-head-is-fold.ts";
import type { StoreCase } from "../store-case.ts";
import { entriesOf, headOf, make, refuses, unchanged } from "./store-checks.ts";
import { assistant, compaction, label, leaf, name, status, user } from "./drafts.ts";

/** Cases: what an append writes, and what it refuses. */
export const appendCases: readonly StoreCase[] = [
  {
    name: "gives each entry its position and parent, and returns entries and head",
    async run({ store }) {
      await make(store, "a");
      const first = await store.append("a", [user("one", { id: "1" }), assistant("two", {}, { id: "2" })]);
      const second = await store.append("a", [user("three", { id: "3" })]);
      assert.deepEqual([first.version, second.version], [2, 3]);
      assert.deepEqual(second.head, await store.head("a"));
      assert.deepEqual(await entriesOf(store, "a"), [...first.entries, ...second.entries]);
      const stamps = [...first.entries, ...second.entries].map(({ id, parentId, seq }) => ({ id, parentId, seq }));
      assert.deepEqual(stamps, [
        { id: "1", parentId: null, seq: 0 },
        { id: "2", parentId: "1", seq: 1 },
        { id: "3", parentId: "2", seq: 2 },
      ]);
      assert.equal(second.head.leafId, "3");
    },
  },
  {
    name: "generates missing ids and times, and keeps given ones",
    async run({ store }) {
      await make(store, "a");
      const timestamp = "2001-02-03T04:05:06.007Z";
      const { entries } = await store.append("a", [
        user("one"),
        user("two"),
        user("three", { id: "user:3", timestamp }),
      ]);
      assert.equal(new Set(entries.map(({ id }) => id)).size, 3);
      for (const { id, timestamp: time } of entries.slice(0, 2)) {
        assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        assert.ok(Math.abs(Date.now() - Date.parse(time)) < 60_000 * 60 * 24, `${time} is not about now`);
      }
      assert.deepEqual([entries[2]?.id, entries[2]?.timestamp], ["user:3", timestamp]);
      assert.equal((await headOf(store, "a")).modifiedAt, timestamp);
    },
  },
  {
    name: "appends facts below the leaf without moving the leaf",
    async run({ store }) {
      await make(store, "a");
      await store.append("a", [
        user("one", { id: "1" }),
        name("n", { id: "f" }),
        label("1", "l", { id: "g" }),
        user("two", { id: "2" }),
      ]);
      assert.deepEqual(
        (await entriesOf(store, "a")).map(({ parentId }) => parentId),
        [null, "1", "1", "1"],
      );
      assert.equal((await headOf(store, "a")).leafId, "2");
    },
  },
  {
    name: "refuses to append to a missing or deleted session",
    async run({ store }) {
      await refuses(store.append("nowhere", [user("x")]), "SESSION_NOT_FOUND", { sessionId: "nowhere" });
      await make(store, "a");
      await store.delete("a");
      await refuses(store.append("a", [user("x")]), "SESSION_NOT_FOUND", { sessionId: "a" });
      assert.equal(await store.head("nowhere"), null);
    },
  },
  {
    name: "an empty append returns the current version, and is refused for a missing session",
    async run({ store }) {
      await makeThree(store);
      await unchanged(store, "a", async () => {
        const { version, entries, head } = await store.append("a", []);
        assert.deepEqual({ version, entries, head }, { version: 3, entries: [], head: await store.head("a") });
        await store.append("a", [], { expectedVersion: 0, guard: { status: "closed" } });
      });
      await refuses(store.append("nowhere", []), "SESSION_NOT_FOUND");
    },
  },
  ...badDrafts().map(
    ([what, bad, code]): StoreCase => ({
      name: `writes nothing of an append if one of its three entries ${what}`,
      async run({ store }) {
        await makeThree(store);
        await unchanged(store, "a", () => refuses(store.append("a", [user("good"), bad, user("good too")]), code));
        assert.equal((await store.append("a", [user("next")])).version, 4);
        await checkHeadIsFold(store, "a");
      },
    }),
  ),
  {
    name: "refuses drafts that are not a list",
    async run({ store }) {
      await makeThree(store);
      for (const drafts of [null, undefined, {}, "entries", user("alone")]) {
        await unchanged(store, "a", () => refuses(store.append("a", drafts as never), "INVALID_ENTRY"));
      }
    },
  },
  {
    name: "refuses an append with too many entries, and writes none of them",
    async run({ store }) {
      await makeThree(store);
      const many = Array.from({ length: 10_001 }, () => user("x"));
      await unchanged(store, "a", () => refuses(store.append("a", many), "TOO_LARGE"));
    },
  },
  {
    name: "refuses invalid append options",
    async run({ store }) {
      await makeThree(store);
      const bad = [
        { expectedVersion: -1 },
        { expectedVersion: 1.5 },
        { expectedVersion: "3" },
        { expectedVersion: Number.NaN },
        { verbatim: 1 },
        { guard: null },
        { guard: { status: "asleep" } },
        { guard: { status: [] } },
        { guard: { maxTurns: -1 } },
        { guard: { variablesBytesMax: 1.5 } },
        { guard: { leaseToken: "1" } },
      ];
      for (const options of [...bad, null, 7]) {
        await unchanged(store, "a", () => refuses(store.append("a", [user("x")], options as never), "INVALID_OPTION"));
      }
    },
  },
  {
    name: "keeps parents and unknown types in a verbatim append, and ignores a parent in any other",
    async run({ store }) {
      await makeThree(store);
      const unknown = { type: "hologram", id: "h" } as unknown as EntryDraft;
      await store.append("a", [user("side", { id: "side", parentId: "1" }), unknown], { verbatim: true });
      await store.append("a", [user("main", { id: "main", parentId: "1" })]);
      const parents = (await entriesOf(store, "a", { after: 2 })).map(({ id, parentId }) => [id, parentId]);
      assert.deepEqual(parents, [
        ["side", "1"],
        ["h", "side"],
        ["main", "3"],
      ]);
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "a verbatim append can add several children of the leaf, and moves the leaf to the first",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [user("x", { id: "x", parentId: "3" }), user("y", { id: "y", parentId: "3" })], {
        verbatim: true,
      });
      assert.deepEqual([(await headOf(store, "a")).leafId, (await store.path("a", "y"))?.depth], ["x", 4]);
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "accepts a fact about an entry of the same append",
    async run({ store }) {
      await make(store, "a");
      await store.append("a", [
        user("one", { id: "1" }),
        label("1", "first"),
        user("two", { id: "2" }),
        leaf("1"),
        user("other", { id: "3" }),
      ]);
      assert.equal((await store.getEntry("a", "3"))?.parentId, "1");
      assert.equal((await headOf(store, "a")).path.depth, 2);
      await checkHeadIsFold(store, "a");
    },
  },
];

/** Creates a session with the messages 1, 2 and 3. */
export async function makeThree(store: SessionStore, id = "a"): Promise<void> {
  await make(store, id);
  await store.append(id, [user("one", { id: "1" }), assistant("two", {}, { id: "2" }), user("three", { id: "3" })]);
}

function badDrafts(): [
  what: string,
  draft: EntryDraft,
  code: "INVALID_ENTRY" | "INVALID_ID" | "UNKNOWN_ENTRY" | "ENTRY_EXISTS",
][] {
  const as = (draft: unknown): EntryDraft => draft as EntryDraft;
  return [
    ["is not an object", as(null), "INVALID_ENTRY"],
    ["is of an unknown type", as({ type: "hologram" }), "INVALID_ENTRY"],
    ["has no type", as({ message: {} }), "INVALID_ENTRY"],
    ["has the type lost, which is never stored", as({ type: "lost", reason: "x" }), "INVALID_ENTRY"],
    ["has a missing field", as({ type: "message" }), "INVALID_ENTRY"],
    [
      "has a message of an unknown role",
      as({ type: "message", message: { role: "bystander", content: "x" } }),
      "INVALID_ENTRY",
    ],
    ["has an unknown status", status("asleep" as "active"), "INVALID_ENTRY"],
    ["has an invalid time", user("x", { timestamp: "2024-13-41T00:00:00.000Z" }), "INVALID_ENTRY"],
    ["has an empty id", user("x", { id: "" }), "INVALID_ID"],
    ["labels a missing entry", label("nowhere", "x"), "UNKNOWN_ENTRY"],
    ["moves the leaf to a missing entry", leaf("nowhere"), "UNKNOWN_ENTRY"],
    ["prunes a missing entry", as({ type: "prune", targetId: "nowhere" }), "UNKNOWN_ENTRY"],
    ["undoes an entry that is not a compaction", as({ type: "compaction_undone", targetId: "2" }), "INVALID_ENTRY"],
    ["has the id of another entry", compaction("1", { id: "2" }), "ENTRY_EXISTS"],
  ];
}
