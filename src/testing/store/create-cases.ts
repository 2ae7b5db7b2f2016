import assert from "node:assert/strict";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader, FORMAT_VERSION } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { checkHeadIsFold } from "../check-head-is-fold.ts";
import type { StoreCase } from "../store-case.ts";
import { entriesOf, headOf, idsOf, make, refuses } from "./store-checks.ts";
import { assistant, label, leaf, status, user } from "./drafts.ts";

const TIME = "2024-02-03T04:05:06.789Z";

/** A tree with two branches, the leaf on the first, a message appended onto the other, and a fact. */
const copied: EntryDraft[] = [
  user("root", { id: "root", parentId: null, timestamp: TIME }),
  assistant("left", {}, { id: "left", parentId: "root", timestamp: TIME }),
  leaf("root", { id: "move", parentId: "left", timestamp: TIME }),
  assistant("right", {}, { id: "right", parentId: "root", timestamp: TIME }),
  assistant("late", {}, { id: "late", parentId: "left", timestamp: TIME }),
  label("left", "kept", { id: "label", parentId: "right", timestamp: TIME }),
];

/** Cases: creating sessions. */
export const createCases: readonly StoreCase[] = [
  {
    name: "creates an active, empty session and returns its head",
    async run({ store }) {
      const header = createHeader({
        id: "a",
        userId: "u",
        cwd: "/srv",
        createdAt: TIME,
        metadata: { k: [1, { x: null }] },
      });
      const head = await store.create(header);
      assert.deepEqual(head.header, header);
      const { version, leafId, status: state, name, messageCount, firstMessage, modifiedAt } = head;
      assert.deepEqual(
        { version, leafId, state, name, messageCount, firstMessage, modifiedAt },
        {
          version: 0,
          leafId: null,
          state: "active",
          name: null,
          messageCount: 0,
          firstMessage: null,
          modifiedAt: TIME,
        },
      );
      assert.deepEqual(await store.head("a"), head);
      assert.deepEqual(await entriesOf(store, "a"), []);
    },
  },
  {
    name: "creates a session with entries that keep their ids, times and parents",
    async run({ store }) {
      const head = await store.create(createHeader({ id: "a" }), { entries: copied });
      assert.equal(head.version, copied.length);
      assert.equal(head.leafId, "right");
      const expected = copied.map((draft, seq) => ({ ...draft, seq }));
      assert.deepEqual(await entriesOf(store, "a"), expected);
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "chains the initial entries that name no parent",
    async run({ store }) {
      await store.create(createHeader({ id: "a" }), { entries: [user("one", { id: "1" }), user("two", { id: "2" })] });
      assert.deepEqual(
        (await entriesOf(store, "a")).map(({ parentId }) => parentId),
        [null, "1"],
      );
    },
  },
  {
    name: "creates nothing if an initial entry names a missing parent",
    async run({ store }) {
      const entries = [user("one", { id: "1" }), user("two", { id: "2", parentId: "nowhere" })];
      await refuses(store.create(createHeader({ id: "a" }), { entries }), "UNKNOWN_ENTRY", { entryId: "nowhere" });
      assert.equal(await store.head("a"), null);
      await make(store, "a");
    },
  },
  {
    name: "stores entries of unknown types, and does not count them in the head",
    async run({ store }) {
      const unknown = { type: "hologram", id: "h", depth: { of: "field" } } as unknown as EntryDraft;
      await store.create(createHeader({ id: "a" }), {
        entries: [user("one", { id: "1" }), unknown, user("two", { id: "2" })],
      });
      const [, kept, after] = await entriesOf(store, "a");
      assert.deepEqual({ ...kept, timestamp: null }, { ...unknown, parentId: "1", seq: 1, timestamp: null });
      assert.equal(after?.parentId, "1");
      assert.equal(await store.path("a", "h"), null);
      assert.deepEqual([(await headOf(store, "a")).version, (await headOf(store, "a")).messageCount], [3, 2]);
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "keeps an entry of an unknown type with node: true on the path",
    async run({ store }) {
      const unknown = { type: "hologram", node: true, id: "h" } as unknown as EntryDraft;
      await store.create(createHeader({ id: "a" }), {
        entries: [user("one", { id: "1" }), unknown, user("two", { id: "2" })],
      });
      assert.deepEqual(
        (await entriesOf(store, "a")).map(({ parentId }) => parentId),
        [null, "1", "h"],
      );
      assert.equal((await store.path("a", "2"))?.depth, 3);
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "refuses an id that exists, and does not change that session",
    async run({ store }) {
      await make(store, "a", { userId: "first" });
      await store.append("a", [user("hello", { id: "1" })]);
      await refuses(make(store, "a", { userId: "second" }), "SESSION_EXISTS");
      await refuses(store.create(createHeader({ id: "a" }), { entries: [user("x")] }), "SESSION_EXISTS");
      assert.equal((await headOf(store, "a")).header.userId, "first");
      assert.deepEqual(await idsOf(store, "a"), ["1"]);
    },
  },
  {
    name: "refuses the id of a deleted session",
    async run({ store }) {
      await make(store, "a");
      await store.delete("a");
      await refuses(make(store, "a"), "SESSION_EXISTS");
    },
  },
  {
    name: "of many concurrent creates with one id, exactly one succeeds",
    async run({ store }) {
      const tries = Array.from({ length: 10 }, (_, i) => make(store, "a", { userId: `u${i}` }));
      const results = await Promise.allSettled(tries);
      assert.equal(results.filter((result) => result.status === "fulfilled").length, 1);
      for (const result of results)
        if (result.status === "rejected") await refuses(Promise.reject(result.reason), "SESSION_EXISTS");
    },
  },
  {
    name: "counts a user's active and suspended sessions against maxOpenPerUser, not closed, expired or deleted ones",
    async run({ store }) {
      for (const id of ["active", "suspended", "closed", "expired", "deleted"]) await make(store, id, { userId: "u" });
      for (const to of ["suspended", "closed", "expired"] as const) await store.append(to, [status(to)]);
      await store.delete("deleted");
      await make(store, "of-another", { userId: "v" });
      await refuses(createAtMost(store, "next", "u", 2), "CAPACITY", { limit: 2 });
      assert.equal(await store.head("next"), null);
      await createAtMost(store, "next", "u", 3);
      await refuses(createAtMost(store, "one-more", "u", 3), "CAPACITY", { limit: 3 });
      await store.delete("next");
      await createAtMost(store, "one-more", "u", 3);
    },
  },
  {
    name: "enforces maxOpenPerUser for concurrent creates",
    async run({ store }) {
      const tries = Array.from({ length: 10 }, (_, i) => createAtMost(store, `s${i}`, "u", 3));
      const results = await Promise.allSettled(tries);
      assert.equal(results.filter((result) => result.status === "fulfilled").length, 3);
      assert.equal(await store.count({ userId: "u" }), 3);
    },
  },
  {
    name: "does not apply maxOpenPerUser to a session without a user",
    async run({ store }) {
      for (const id of ["a", "b"]) await store.create(createHeader({ id }), { maxOpenPerUser: 1 });
      assert.equal(await store.count(), 2);
    },
  },
  {
    name: "refuses an invalid header, and creates nothing",
    async run({ store }) {
      const header = createHeader({ id: "a" });
      await refuses(store.create({ ...header, createdAt: "yesterday" }), "INVALID_HEADER");
      await refuses(store.create({ ...header, metadata: { f: () => 1 } as never }), "INVALID_VALUE");
      await refuses(store.create({ ...header, metadata: { big: "x".repeat(300_000) } }), "TOO_LARGE");
      await refuses(store.create({ ...header, version: (FORMAT_VERSION + 1) as 3 }), "UNSUPPORTED_VERSION");
      await refuses(store.create(null as never), "INVALID_HEADER");
      await refuses(store.create(header, { maxOpenPerUser: -1 }), "INVALID_OPTION");
      assert.equal(await store.head("a"), null);
      assert.equal(await store.count(), 0);
    },
  },
];

function createAtMost(store: SessionStore, id: string, userId: string, maxOpenPerUser: number): Promise<unknown> {
  return store.create(createHeader({ id, userId }), { maxOpenPerUser });
}
