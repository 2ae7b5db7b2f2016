import assert from "node:assert/strict";
import type { EntryDraft } from "../../session/log/entry.ts";
import { OPEN_RUNS_MAX } from "../../session/limits.ts";
import { openAgain, type StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";
import { headOf, make, openIn, refuses, unchanged, until, within } from "./store-checks.ts";
import { assistant, compaction, status, user } from "./drafts.ts";

const LONG_MS = 60_000;
const run = (runId: string, phase: "started" | "failed"): EntryDraft => ({ type: "run", runId, phase });

/** Cases: leases. */
export const leaseCases: readonly StoreCase[] = [
  {
    name: "gives the lease of a session to one run at a time, and reports its holder",
    async run({ store }) {
      await makeThree(store);
      assert.equal(await store.leaseOf("a"), null);
      const lease = await store.lease("a", "run-1", LONG_MS);
      const { sessionId, runId, token, expiresAt } = lease;
      assert.deepEqual([sessionId, runId], ["a", "run-1"]);
      assert.deepEqual(await store.leaseOf("a"), { sessionId, runId, token, expiresAt });
      await refuses(store.lease("a", "run-2", LONG_MS), "SESSION_BUSY", { sessionId: "a" });
      assert.equal((await store.leaseOf("a"))?.token, token);
      await make(store, "b");
      await store.lease("b", "run-2", LONG_MS);
      await lease.release();
      assert.equal(await store.leaseOf("a"), null);
      await lease.release();
      const next = await store.lease("a", "run-2", LONG_MS);
      assert.ok(next.token > token, `token ${next.token} is not larger than ${token}`);
    },
  },
  {
    name: "gives the lease to exactly one of many concurrent callers",
    async run({ store }) {
      await makeThree(store);
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, (_, i) => store.lease("a", `run-${i}`, LONG_MS)),
      );
      assert.equal(results.filter((result) => result.status === "fulfilled").length, 1);
    },
  },
  {
    name: "an expired lease is given to the next run with a larger token",
    async run({ store }) {
      await makeThree(store);
      const lost = await store.lease("a", "run-1", 20);
      await until(async () => (await store.leaseOf("a")) === null, "the end of the lease");
      const next = await store.lease("a", "run-2", LONG_MS);
      assert.ok(next.token > lost.token);
      await refuses(lost.renew(), "LEASE_LOST", { token: lost.token });
      await lost.release();
      assert.equal((await store.leaseOf("a"))?.token, next.token);
    },
  },
  {
    name: "a renewed lease lasts as long as the renewal says",
    async run({ store }) {
      await makeThree(store);
      const lease = await store.lease("a", "run-1", 5_000);
      const first = lease.expiresAt;
      await lease.renew(LONG_MS);
      assert.ok(lease.expiresAt > first, "a renewal moves the end of the lease");
      assert.equal((await store.leaseOf("a"))?.expiresAt, lease.expiresAt);
      await lease.renew(1);
      await until(async () => (await store.leaseOf("a")) === null, "the end of the renewed lease");
      await refuses(lease.renew(), "LEASE_LOST");
      await refuses(lease.renew(0), "INVALID_OPTION");
    },
  },
  {
    name: "exactly one of many concurrent claims gets a run, and no other claim does while that lease is live",
    async run({ store }) {
      await makeThree(store);
      const claims = await Promise.allSettled(Array.from({ length: 10 }, () => store.lease("a", "run-1", LONG_MS)));
      const [first, ...more] = claims.flatMap((claim) => (claim.status === "fulfilled" ? [claim.value] : []));
      assert.ok(first !== undefined && more.length === 0, `${more.length + Number(first !== undefined)} have it`);
      await refuses(store.lease("a", "run-1", LONG_MS), "SESSION_BUSY", { sessionId: "a" });
      await first.renew();
      await first.release();
      const second = await store.lease("a", "run-1", LONG_MS);
      assert.ok(second.token > first.token);
      await refuses(first.renew(), "LEASE_LOST");
      await first.release();
      assert.equal((await store.leaseOf("a"))?.token, second.token);
    },
  },
  {
    name: "releases a lease that is disposed",
    async run({ store }) {
      await makeThree(store);
      {
        await using lease = await store.lease("a", "run-1", LONG_MS);
        assert.equal((await store.leaseOf("a"))?.token, lease.token);
      }
      assert.equal(await store.leaseOf("a"), null);
    },
  },
  {
    name: "accepts a lease token only from the live lease",
    async run({ store }) {
      await makeThree(store);
      const lease = await store.lease("a", "run-1", LONG_MS);
      const { token } = lease;
      await store.append("a", [user("mine", { id: "4" })], {
        guard: { leaseToken: token, status: "active" },
        expectedVersion: 3,
        onto: "3",
      });
      await unchanged(store, "a", async () => {
        await refuses(store.append("a", [user("x")], { guard: { leaseToken: token + 1 } }), "LEASE_LOST", {
          sessionId: "a",
          token: token + 1,
        });
        await refuses(
          store.append("a", [user("x")], { guard: { leaseToken: token }, expectedVersion: 3 }),
          "CONFLICT",
          { expected: 3 },
        );
        await refuses(store.append("a", [user("x")], { guard: { leaseToken: token, status: "closed" } }), "TRANSITION");
      });
      await lease.release();
      await unchanged(store, "a", () =>
        refuses(store.append("a", [user("x")], { guard: { leaseToken: token } }), "LEASE_LOST"),
      );
      const next = await store.lease("a", "run-2", LONG_MS);
      await unchanged(store, "a", () =>
        refuses(store.append("a", [user("x")], { guard: { leaseToken: token } }), "LEASE_LOST"),
      );
      await store.append("a", [user("theirs")], { guard: { leaseToken: next.token } });
      await store.append("a", [user("anyone's")]);
      assert.equal((await headOf(store, "a")).version, 6);
    },
  },
  {
    name: "accepts entries of an open run from the lease holder only, and other entries from everyone",
    async run({ store }) {
      await makeThree(store);
      const lease = await store.lease("a", "run-1", LONG_MS);
      const guard = { leaseToken: lease.token };
      const calls = [{ id: "c", name: "read", arguments: "{}" }];
      await store.append("a", [run("run-1", "started"), assistant("", { toolCalls: calls })], { guard });
      const result: EntryDraft = {
        type: "message",
        message: { role: "tool", toolCallId: "c", name: "read", content: "mine" },
      };
      const prune: EntryDraft = { type: "prune", targetId: "1" };
      for (const draft of [result, assistant("", { toolCalls: calls }), compaction("1"), prune]) {
        await unchanged(store, "a", () => refuses(store.append("a", [draft]), "SESSION_BUSY"));
        await unchanged(store, "a", () =>
          refuses(store.append("a", [draft], { guard: { leaseToken: lease.token + 1 } }), "LEASE_LOST"),
        );
      }
      await store.append("a", [user("anyone's")]);
      await store.append("a", [result], { guard });
      await lease.release();
      // The lease was released, but the run is still open.
      await unchanged(store, "a", () => refuses(store.append("a", [result]), "SESSION_BUSY"));
      await store.append("a", [run("run-1", "failed")]);
      await store.append("a", [result, compaction("1")]);
      await refuses(store.append("a", [user("x")], { guard: { holds: 1 as never } }), "INVALID_OPTION");
    },
  },
  {
    name: "refuses to start more open runs than a session may have, and keeps all open ones",
    async run({ store }) {
      await makeThree(store);
      const runs = Array.from({ length: OPEN_RUNS_MAX }, (_, index) => `r${index}`);
      await store.append(
        "a",
        runs.map((runId) => run(runId, "started")),
      );
      await unchanged(store, "a", () =>
        refuses(store.append("a", [run("one more", "started")]), "CAPACITY", { limit: OPEN_RUNS_MAX }),
      );
      assert.deepEqual(await openIn(store, "a"), runs);
      await store.append("a", [run("r0", "failed"), run("one more", "started")]);
      assert.deepEqual(await openIn(store, "a"), [...runs.slice(1), "one more"]);
    },
  },
  {
    name: "an exact retry succeeds even if its lease was lost, and a failed status guard is reported before a lost lease",
    async run({ store }) {
      await makeThree(store);
      const lease = await store.lease("a", "run-1", LONG_MS);
      const guard = { leaseToken: lease.token };
      await store.append("a", [user("mine", { id: "4" })], { guard });
      await lease.release();
      await unchanged(store, "a", async () => {
        assert.equal((await store.append("a", [user("mine", { id: "4" })], { guard })).version, 4);
        await refuses(store.append("a", [user("mine", { id: "4" }), user("x", { id: "5" })], { guard }), "LEASE_LOST");
        await refuses(store.append("a", [user("other", { id: "4" })], { guard }), "ENTRY_EXISTS");
      });
      await store.append("a", [status("closed")]);
      await refuses(store.append("a", [user("x")], { guard: { ...guard, status: "active" } }), "SESSION_CLOSED");
    },
  },
  {
    name: "refuses a lease of a missing session, or with an invalid duration",
    async run({ store }) {
      await refuses(store.lease("nowhere", "run", LONG_MS), "SESSION_NOT_FOUND", { sessionId: "nowhere" });
      await makeThree(store);
      for (const ttlMs of [0, -1, 1.5, Number.NaN, 1e12, undefined])
        await refuses(store.lease("a", "run", ttlMs as number), "INVALID_OPTION");
      assert.equal(await store.leaseOf("a"), null);
      assert.equal(await store.leaseOf("nowhere"), null);
    },
  },
  {
    name: "deleting a session ends its lease",
    async run({ store }) {
      await makeThree(store);
      const lease = await store.lease("a", "run-1", LONG_MS);
      await store.delete("a");
      assert.equal(await store.leaseOf("a"), null);
      await refuses(lease.renew(), "LEASE_LOST");
      await store.undelete("a");
      const next = await store.lease("a", "run-2", LONG_MS);
      assert.ok(next.token > lease.token);
    },
  },
  {
    name: "two handles share leases and fencing tokens",
    needs: "shared-lease",
    async run(context) {
      const { store } = context;
      const other = await openAgain(context);
      await makeThree(store);
      const lease = await store.lease("a", "run-1", LONG_MS);
      assert.equal((await other.leaseOf("a"))?.token, lease.token);
      await refuses(other.lease("a", "run-2", LONG_MS), "SESSION_BUSY");
      await other.append("a", [user("mine")], { guard: { leaseToken: lease.token } });
      await lease.release();
      const next = await within(other.lease("a", "run-2", LONG_MS), "the lease of the second run");
      assert.ok(next.token > lease.token);
      await refuses(store.append("a", [user("x")], { guard: { leaseToken: lease.token } }), "LEASE_LOST");
    },
  },
];
