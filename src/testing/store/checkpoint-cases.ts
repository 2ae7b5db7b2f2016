import assert from "node:assert/strict";
import type { SessionErrorCode } from "../../session/errors.ts";
import type { Checkpoint } from "../../session/store.ts";
import { openAgain, type StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";
import { refuses } from "./store-checks.ts";

/** Cases: checkpoints. */
export const checkpointCases: readonly StoreCase[] = [
  {
    name: "saves a checkpoint and returns it unchanged",
    async run({ store }) {
      await makeThree(store);
      const full = checkpoint("c", {
        leafId: "2",
        parentCheckpointId: "before",
        metadata: { a: [1, { b: "\u2028" }] },
        sandboxSnapshot: { files: ["x"] },
      });
      await store.saveCheckpoint(full);
      await store.saveCheckpoint(checkpoint("plain"));
      assert.deepEqual(await store.loadCheckpoint("c"), full);
      assert.deepEqual(await store.loadCheckpoint("plain"), checkpoint("plain"));
      assert.equal(await store.loadCheckpoint("nowhere"), null);
    },
  },
  {
    name: "lists the checkpoints of a session, the oldest first, equal times in the order they were saved",
    async run({ store }) {
      await makeThree(store);
      await makeThree(store, "b");
      for (const [id, day] of [
        ["z", 2],
        ["y", 2],
        ["later", 9],
        ["early", 1],
        ["x", 2],
      ] as const) {
        await store.saveCheckpoint(checkpoint(id, { createdAt: `2024-01-0${day}T00:00:00.000Z` }));
      }
      await store.saveCheckpoint(checkpoint("other", { sessionId: "b" }));
      assert.deepEqual(
        (await store.listCheckpoints("a")).map(({ id }) => id),
        ["early", "z", "y", "x", "later"],
      );
      assert.deepEqual(await store.listCheckpoints("b"), [checkpoint("other", { sessionId: "b" })]);
      assert.deepEqual(await store.listCheckpoints("nowhere"), []);
    },
  },
  {
    name: "deletes a checkpoint, and returns whether it existed",
    async run({ store }) {
      await makeThree(store);
      await store.saveCheckpoint(checkpoint("c"));
      await store.saveCheckpoint(checkpoint("d"));
      assert.deepEqual([await store.deleteCheckpoint("c"), await store.deleteCheckpoint("c")], [true, false]);
      assert.equal(await store.loadCheckpoint("c"), null);
      assert.deepEqual(
        (await store.listCheckpoints("a")).map(({ id }) => id),
        ["d"],
      );
      await store.saveCheckpoint(checkpoint("c", { version: 1 }));
      assert.equal((await store.loadCheckpoint("c"))?.version, 1);
    },
  },
  {
    name: "accepts the same checkpoint twice, and refuses its id with other content or for another session",
    async run({ store }) {
      await makeThree(store);
      await makeThree(store, "b");
      await store.saveCheckpoint(checkpoint("c", { metadata: { a: 1, b: 2 } }));
      await store.saveCheckpoint(checkpoint("c", { metadata: { b: 2, a: 1 } }));
      await refuses(store.saveCheckpoint(checkpoint("c", { metadata: { a: 2 } })), "CHECKPOINT_EXISTS");
      await refuses(store.saveCheckpoint(checkpoint("c", { sessionId: "b" })), "CHECKPOINT_EXISTS");
      assert.deepEqual(await store.listCheckpoints("a"), [checkpoint("c", { metadata: { a: 1, b: 2 } })]);
      assert.deepEqual(await store.listCheckpoints("b"), []);
    },
  },
  {
    name: "refuses a checkpoint of a missing or deleted session",
    async run({ store }) {
      await refuses(store.saveCheckpoint(checkpoint("c")), "SESSION_NOT_FOUND", { sessionId: "a" });
      await makeThree(store);
      await store.delete("a");
      await refuses(store.saveCheckpoint(checkpoint("c")), "SESSION_NOT_FOUND");
      await store.undelete("a");
      assert.equal(await store.loadCheckpoint("c"), null);
    },
  },
  {
    name: "deletes, undeletes and purges the checkpoints of a session with the session",
    async run({ store }) {
      await makeThree(store);
      await store.saveCheckpoint(checkpoint("c"));
      await store.delete("a");
      assert.deepEqual(
        [await store.loadCheckpoint("c"), await store.listCheckpoints("a"), await store.deleteCheckpoint("c")],
        [null, [], false],
      );
      assert.deepEqual(await store.listCheckpoints("a", { deleted: true }), [checkpoint("c")]);
      await store.undelete("a");
      assert.deepEqual(await store.listCheckpoints("a"), [checkpoint("c")]);
      assert.deepEqual(await store.listCheckpoints("a", { deleted: true }), []);
      await store.delete("a");
      await store.purge("9999-12-31T23:59:59.999Z");
      await makeThree(store, "b");
      await store.saveCheckpoint(checkpoint("c", { sessionId: "b" }));
      assert.equal((await store.loadCheckpoint("c"))?.sessionId, "b");
    },
  },
  {
    name: "refuses an invalid checkpoint",
    async run({ store }) {
      await makeThree(store);
      const bad: readonly (readonly [unknown, SessionErrorCode])[] = [
        [null, "INVALID_VALUE"],
        [{ ...checkpoint("c"), version: -1 }, "INVALID_VALUE"],
        [{ ...checkpoint("c"), version: "3" }, "INVALID_VALUE"],
        [{ ...checkpoint("c"), createdAt: "now" }, "INVALID_VALUE"],
        [{ ...checkpoint("c"), metadata: [] }, "INVALID_VALUE"],
        [{ ...checkpoint("c"), metadata: { f: () => 1 } }, "INVALID_VALUE"],
        [{ ...checkpoint("c"), sandboxSnapshot: new Date() }, "INVALID_VALUE"],
        [{ ...checkpoint("c"), more: 1 }, "INVALID_VALUE"],
        [{ ...checkpoint("c"), id: 7 }, "INVALID_ID"],
        [{ ...checkpoint("c"), leafId: "" }, "INVALID_ID"],
        [{ ...checkpoint("c"), parentCheckpointId: "" }, "INVALID_ID"],
        [{ ...checkpoint("c"), sandboxSnapshot: "x".repeat(9_000_000) }, "TOO_LARGE"],
      ];
      for (const [value, code] of bad) await refuses(store.saveCheckpoint(value as Checkpoint), code);
      assert.deepEqual(await store.listCheckpoints("a"), []);
    },
  },
  {
    name: "keeps its checkpoints after the store was reopened",
    needs: "durable",
    async run(context) {
      await makeThree(context.store);
      await context.store.saveCheckpoint(checkpoint("c", { sandboxSnapshot: null }));
      await context.store.close();
      const store = await openAgain(context);
      assert.deepEqual(await store.loadCheckpoint("c"), checkpoint("c", { sandboxSnapshot: null }));
    },
  },
];

function checkpoint(id: string, init: Partial<Checkpoint> = {}): Checkpoint {
  const createdAt = "2024-01-01T00:00:00.000Z";
  return { id, sessionId: "a", version: 3, leafId: "3", createdAt, parentCheckpointId: null, metadata: {}, ...init };
}
