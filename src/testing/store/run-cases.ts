import assert from "node:assert/strict";
import type { EntryDraft } from "../../session/log/entry.ts";
import { answerIdOf, requestIdOf, type RunsCondition } from "../../session/log/open-runs.ts";
import type { SessionStore } from "../../session/store.ts";
import { openAgain, type StoreCase } from "../store-case.ts";
import { entriesOf, headOf, listAll, make, openIn, refuses, unchanged } from "./store-checks.ts";
import { status, user } from "./drafts.ts";

const LONG_MS = 60_000;
const WORDS: readonly RunsCondition[] = ["requested", "running", "asking", "interrupted"];

/** Cases: open runs, and listing sessions by them. */
export const runCases: readonly StoreCase[] = [
  {
    name: "accepts the same run request repeatedly, and refuses another request with its id",
    async run({ store }) {
      await make(store, "a");
      const guard = { noOpenRun: true } as const;
      await store.append("a", [request("r")], { guard, by: "ann" });
      await unchanged(store, "a", async () => {
        await store.append("a", [request("r")], { guard, by: "bob" });
        await refuses(store.append("a", [request("r", { input: "other" })]), "ENTRY_EXISTS");
        await refuses(store.append("a", [{ ...request("r"), id: "another" }]), "INVALID_ENTRY");
        await refuses(store.append("a", [request("s")], { guard }), "SESSION_BUSY", { sessionId: "a" });
      });
      assert.deepEqual(
        (await entriesOf(store, "a")).map(({ id, by }) => [id, by]),
        [["run:r", "ann"]],
      );
      await store.append("a", [request("s"), cancel("r")]);
      assert.deepEqual(await openIn(store, "a"), ["s"]);
    },
  },
  {
    name: "does not list a session as idle while a run waits to begin, to continue or for an answer",
    async run({ store }) {
      for (const id of ["a", "b", "c", "d", "e"]) await make(store, id);
      await store.append("a", [request("r")]);
      await store.append("b", [run("r", "started"), question("q", "c"), parked("r", ["q"])]);
      await store.append("c", [run("r", "started"), question("q", "c"), parked("r", ["q"]), answer("q", "c", true)]);
      await store.append("d", [run("r", "started")]);
      const idle = async (limit: number): Promise<string[]> =>
        (await store.listExpired("9999-01-01T00:00:00.000Z", limit)).map(({ header }) => header.id);
      assert.deepEqual((await idle(10)).sort(), ["d", "e"]);
      // The sessions with waiting runs have been idle for the longest, and must not hide the others.
      assert.equal((await idle(1)).length, 1);
      await store.append("a", [cancel("r")]);
      assert.deepEqual((await idle(10)).sort(), ["a", "d", "e"]);
    },
  },
  {
    name: "a fork does not inherit open runs of its source",
    async run({ store }) {
      await make(store, "a");
      await store.append("a", [user("hi", { id: "1" }), request("r")]);
      const { header } = await headOf(store, "a");
      const fork = await store.fork("a", { ...header, id: "b" });
      assert.deepEqual(fork.openRuns, []);
      await unchanged(store, "b", () => refuses(store.append("b", [request("r")]), "CONFLICT"));
      assert.deepEqual(await listAll(store, { runs: "requested" }), ["a"]);
    },
  },
  {
    name: "accepts only the first answer to a question, and a parked run is due after its last answer",
    async run({ store }) {
      await make(store, "a");
      const [asked, askedToo] = [question("q1", "c1"), question("q2", "c2")];
      await store.append("a", [run("r", "started"), asked, askedToo, parked("r", ["q1", "q2"])]);
      await store.append("a", [answer("q1", "c1", true)], { by: "ann" });
      assert.deepEqual((await headOf(store, "a")).openRuns, [{ runId: "r", state: "parked", questions: ["q2"] }]);
      await unchanged(store, "a", async () => {
        await store.append("a", [answer("q1", "c1", true)], { by: "bob" });
        await refuses(store.append("a", [answer("q1", "c1", false)]), "ENTRY_EXISTS");
        await refuses(store.append("a", [{ ...answer("q2", "c2", true), id: "another" }]), "INVALID_ENTRY");
        await refuses(store.append("a", [answer("unheard-of", "c2", true)]), "UNKNOWN_ENTRY");
      });
      await store.append("a", [answer("q2", "c2", false)]);
      assert.deepEqual((await headOf(store, "a")).openRuns, [{ runId: "r", state: "answered" }]);
    },
  },
  {
    name: "cancelling or closing the session ends waiting runs, and only marks started ones",
    async run({ store }) {
      await make(store, "a");
      await store.append("a", [request("r"), request("s"), run("t", "started"), cancel("r"), cancel("t")]);
      assert.deepEqual((await headOf(store, "a")).openRuns, [
        { runId: "s", state: "requested", first: 1 },
        { runId: "t", state: "started", cancelled: true },
      ]);
      await store.append("a", [status("suspended")]);
      assert.deepEqual(await openIn(store, "a"), ["s", "t"]);
      await store.append("a", [status("closed")]);
      assert.deepEqual(await openIn(store, "a"), ["t"]);
    },
  },
  {
    name: "lists sessions by their open runs, in pages, and distinguishes running from interrupted ones by the lease",
    async run({ store }) {
      await makeOneOfEach(store);
      const lease = await store.lease("running", "r", LONG_MS);
      assert.deepEqual(await found(store), {
        requested: ["answered", "later", "requested"],
        running: ["running"],
        asking: ["asks", "expiring", "parked"],
        interrupted: ["asks", "interrupted"],
      });
      assert.equal(await store.count({ runs: "requested" }), 3);
      assert.deepEqual(await listAll(store, { runs: "requested", userId: "ann", limit: 1 }), ["requested"]);
      await lease.release();
      assert.deepEqual(await listAll(store, { runs: "running" }), []);
      await store.append("requested", [cancel("r")]);
      await store.append("parked", [answer("q-parked", "c", true)]);
      await store.append("asks", [answer("q-asks", "c", true)]);
      await store.append("interrupted", [run("r", "failed")]);
      await store.delete("later");
      assert.deepEqual(await found(store), {
        requested: ["answered", "parked"],
        running: [],
        asking: ["expiring"],
        interrupted: ["asks", "running"],
      });
      await store.undelete("later");
      assert.deepEqual(await listAll(store, { runs: "requested", limit: 2 }).then((ids) => ids.toSorted()), [
        "answered",
        "later",
        "parked",
      ]);
    },
  },
  {
    name: "lists sessions that are due by a time: with runs that may begin, answered runs and expired questions",
    async run({ store }) {
      await makeOneOfEach(store);
      const due = async (dueBefore: string): Promise<string[]> => (await listAll(store, { dueBefore })).toSorted();
      assert.deepEqual(await due("2030-01-01T00:00:00.000Z"), ["answered", "requested"]);
      assert.deepEqual(await due("2040-01-01T00:00:00.001Z"), ["answered", "expiring", "later", "requested"]);
      assert.deepEqual(await listAll(store, { runs: "asking", dueBefore: "2040-01-01T00:00:00.001Z" }), ["expiring"]);
      await refuses(store.list({ runs: "open" as RunsCondition }), "INVALID_QUERY");
      await refuses(store.list({ dueBefore: "tomorrow" }), "INVALID_QUERY");
    },
  },
  {
    name: "lists open runs after the store was reopened",
    needs: "durable",
    async run(context) {
      await makeOneOfEach(context.store);
      await context.store.close();
      const store = await openAgain(context);
      assert.deepEqual((await found(store)).asking, ["asks", "expiring", "parked"]);
      assert.deepEqual((await headOf(store, "parked")).openRuns, [
        { runId: "r", state: "parked", questions: ["q-parked"] },
      ]);
    },
  },
];

/** Creates one session for each state of an open run, and names it after the state. */
async function makeOneOfEach(store: SessionStore): Promise<void> {
  const ask = (id: string): EntryDraft[] => [run("r", "started"), question(`q-${id}`, "c")];
  const logs: Readonly<Record<string, readonly EntryDraft[]>> = {
    nothing: [run("r", "started"), run("r", "finished")],
    requested: [request("r")],
    later: [request("r", { notBefore: "2040-01-01T00:00:00.000Z" })],
    running: [run("r", "started")],
    parked: [...ask("parked"), parked("r", ["q-parked"])],
    expiring: [...ask("expiring"), { ...parked("r", ["q-expiring"]), expiresAt: "2040-01-01T00:00:00.000Z" }],
    answered: [...ask("answered"), parked("r", ["q-answered"]), answer("q-answered", "c", true)],
    interrupted: [run("r", "started")],
    asks: ask("asks"),
  };
  for (const [id, drafts] of Object.entries(logs)) {
    await make(store, id, id === "requested" ? { userId: "ann" } : {});
    await store.append(id, [user("hi"), ...drafts]);
  }
}

async function found(store: SessionStore): Promise<Record<RunsCondition, string[]>> {
  const lists = await Promise.all(WORDS.map(async (runs) => [runs, (await listAll(store, { runs })).toSorted()]));
  return Object.fromEntries(lists) as Record<RunsCondition, string[]>;
}

function request(runId: string, more: { readonly input?: string; readonly notBefore?: string } = {}): EntryDraft {
  return { type: "run_request", id: requestIdOf(runId), runId, agent: "helper", input: "hi", ...more };
}

function run(runId: string, phase: "started" | "finished" | "failed"): EntryDraft {
  return { type: "run", runId, phase };
}

function cancel(runId: string): EntryDraft {
  return { type: "cancel", runId };
}

function question(id: string, callId: string): EntryDraft {
  return { type: "approval", id, runId: "r", callId };
}

function answer(asked: string, callId: string, approved: boolean): EntryDraft {
  const id = answerIdOf(asked);
  return { type: "approval", id, runId: "r", callId, question: asked, decision: { approved } };
}

function parked(runId: string, questions: readonly string[]): EntryDraft & { readonly type: "run_parked" } {
  return {
    type: "run_parked",
    runId,
    questions: questions.map((id, index) => ({ callId: `c${index}`, question: id })),
  };
}
