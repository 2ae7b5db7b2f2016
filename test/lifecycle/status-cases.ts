import { expect } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import type { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { scripted } from "../../src/models/scripted.ts";
import { CountedBackend } from "../counted-sandbox.ts";
import {
  contentsOf,
  eventsOf,
  type LifecycleCase,
  type LifecycleContext,
  outcomesOf,
  refusal,
  settle,
} from "./lifecycle-case.ts";

/** The possible standings of a session for a caller. */
const STANDINGS = ["active", "suspended", "closed", "expired", "deleted", "missing", "foreign"] as const;
export type Standing = (typeof STANDINGS)[number];

/** A session with a standing, with a checkpoint and a branch with one more turn. */
export interface Subject {
  readonly id: string;
  readonly checkpointId: string;
  readonly branchId: string;
}

type Call = (manager: SessionManager, subject: Subject) => PromiseLike<unknown>;
type Expected = "ok" | null | false | { readonly code: string; readonly [field: string]: unknown };

/** Every operation on one session, as the user `ann`. */
export const OPERATIONS: Readonly<Record<string, Call>> = {
  resume: (manager, { id }) => manager.resume(id, { actor: "ann" }),
  open: (manager, { id }) => manager.open(id, { actor: "ann" }),
  addTurn: (manager, { id }) => manager.addTurn(id, { role: "user", content: "more" }, { actor: "ann" }),
  getState: (manager, { id }) => manager.getState(id, { actor: "ann" }),
  suspend: (manager, { id }) => manager.suspend(id, { actor: "ann" }),
  close: (manager, { id }) => manager.close(id, { actor: "ann" }),
  delete: (manager, { id }) => manager.delete(id, { actor: "ann" }),
  checkpoint: (manager, { id }) => manager.checkpoint(id, { actor: "ann" }),
  restore: (manager, { checkpointId }) => manager.restore(checkpointId, { actor: "ann" }),
  fork: (manager, { id }) => manager.fork(id, "another", { actor: "ann" }),
  merge: (manager, { id, branchId }) => manager.merge(id, branchId, { actor: "ann" }),
  preview: (manager, { id, branchId }) => manager.merge(id, branchId, { actor: "ann", dryRun: true }),
  run: (manager, { id }) =>
    manager.run(id, createAgent({ prompt: "Help.", model: scripted(["Done."]), builtInTools: false }), "Go on.", {
      actor: "ann",
    }),
};

const notFound = { code: "SESSION_NOT_FOUND" };
const gone = { deleted: notFound, missing: notFound, foreign: notFound };
const writes = {
  active: "ok",
  suspended: { code: "SESSION_SUSPENDED" },
  closed: { code: "SESSION_CLOSED" },
  expired: { code: "SESSION_EXPIRED" },
  ...gone,
} as const;
const reads = { active: "ok", suspended: "ok", closed: "ok", expired: "ok", ...gone } as const;
const transition = (from: Standing, to: string) => ({ code: "TRANSITION", from, to });

/** The result of each operation, by the standing of its session. */
const OUTCOMES: Readonly<Record<string, Readonly<Record<Standing, Expected>>>> = {
  resume: {
    ...{ active: transition("active", "active"), suspended: "ok", closed: { code: "SESSION_CLOSED" } },
    ...{ expired: { code: "SESSION_EXPIRED" }, deleted: null, missing: null, foreign: null },
  },
  open: { ...writes, suspended: "ok" },
  addTurn: writes,
  getState: { ...reads, deleted: null, missing: null, foreign: null },
  suspend: {
    ...gone,
    active: "ok",
    suspended: transition("suspended", "suspended"),
    closed: transition("closed", "suspended"),
    expired: transition("expired", "suspended"),
  },
  close: {
    ...gone,
    active: "ok",
    suspended: "ok",
    closed: transition("closed", "closed"),
    expired: transition("expired", "closed"),
  },
  delete: { ...reads, deleted: false, missing: false, foreign: false },
  checkpoint: reads,
  restore: {
    ...writes,
    deleted: { code: "CHECKPOINT_NOT_FOUND" },
    missing: { code: "CHECKPOINT_NOT_FOUND" },
    foreign: { code: "CHECKPOINT_NOT_FOUND" },
  },
  fork: reads,
  merge: writes,
  preview: writes,
  run: writes,
};

/** Creates a session with this standing for `ann`. */
export async function subjectOf({ manager, store }: LifecycleContext, standing: Standing): Promise<Subject> {
  const id = `s-${standing}`;
  if (standing === "missing") return { id, checkpointId: "c-missing", branchId: "b-missing" };
  const keeper = manager();
  await keeper.create({ userId: standing === "foreign" ? "bob" : "ann", id });
  await keeper.addTurn(id, { role: "user", content: "hello", turnId: "t1" });
  const { id: checkpointId } = await keeper.checkpoint(id);
  await keeper.addTurn(id, { role: "assistant", content: "hi", turnId: "t2" });
  const { sessionId: branchId } = await keeper.fork(id, "branch");
  await keeper.addTurn(branchId, { role: "user", content: "aside", turnId: "t3" });
  if (standing === "suspended") await keeper.suspend(id);
  if (standing === "closed") await keeper.close(id);
  if (standing === "expired") await store.append(id, [{ type: "status", status: "expired" }]);
  if (standing === "deleted") await store.delete(id);
  return { id, checkpointId, branchId };
}

async function tryAll(context: LifecycleContext, operation: string): Promise<void> {
  const call = OPERATIONS[operation] as Call;
  const manager = context.manager();
  const events = eventsOf(manager);
  for (const standing of STANDINGS) {
    const expected = OUTCOMES[operation]?.[standing];
    const subject = await subjectOf(context, standing);
    events.splice(0);
    const before = await contentsOf(context.store);
    const outcome = await settle(() => call(manager, subject));
    const after = await contentsOf(context.store);
    if (expected === "ok") expect({ standing, outcome }).not.toHaveProperty("outcome.error");
    else if (typeof expected === "object" && expected !== null) {
      expect({ standing, outcome }).toMatchObject({ standing, outcome: { error: expected } });
    } else expect({ standing, outcome }).toEqual({ standing, outcome: { value: expected } });
    if (
      expected === "ok" &&
      !["getState", "preview"].includes(operation) &&
      !(operation === "open" && standing === "active")
    ) {
      expect({ standing, changed: JSON.stringify(after) !== JSON.stringify(before) }).toEqual({
        standing,
        changed: true,
      });
    } else {
      expect({ standing, after }).toEqual({ standing, after: before });
      expect(events).toEqual([]);
    }
  }
}

/** Statuses: which operation is allowed in which status, and its effect. */
export const statusCases: readonly LifecycleCase[] = [
  ...Object.keys(OPERATIONS).map((operation) => ({
    name: `${operation} has a defined result for a session of any status, and changes nothing if it is refused`,
    run: (context: LifecycleContext) => tryAll(context, operation),
  })),
  {
    name: "suspends, resumes and closes a session, with events",
    async run({ manager }) {
      const desk = manager();
      const events = eventsOf(desk);
      await desk.create({ userId: "ann", id: "s" });
      await desk.addTurn("s", { role: "user", content: "hello" });
      expect(await desk.suspend("s")).toMatchObject({
        status: "suspended",
        turnCount: 1,
        turns: [{ content: "hello" }],
      });
      expect(await desk.resume("s", { turns: false })).toMatchObject({ status: "active", turnCount: 1, turns: [] });
      await desk.close("s", { reason: "solved" });
      expect(await desk.getState("s")).toMatchObject({ status: "closed", turnCount: 1 });
      expect(events.map(({ type }) => type)).toEqual(["created", "turnAdded", "suspended", "resumed", "closed"]);
      expect(events.at(-1)).toMatchObject({ sessionId: "s", userId: "ann", reason: "solved" });
    },
  },
  {
    name: "lets one of two concurrent status changes win, and refuses the other",
    async run({ manager }) {
      const desk = manager();
      const other = manager();
      const events = eventsOf(desk);
      await desk.create({ userId: "ann", id: "s" });
      const refused = await Promise.allSettled([desk.suspend("s"), other.suspend("s")]);
      expect(refused.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      const reason = refused.find((result) => result.status === "rejected")?.reason;
      expect(reason).toMatchObject({ name: "SessionTransitionError", from: "suspended", to: "suspended" });
      expect(await outcomesOf([desk.resume("s"), desk.resume("s"), desk.resume("s")])).toEqual({
        ok: 1,
        TRANSITION: 2,
      });
      expect(await outcomesOf([desk.close("s"), desk.close("s"), desk.close("s")])).toEqual({ ok: 1, TRANSITION: 2 });
      expect(events.filter(({ type }) => type === "closed")).toHaveLength(1);
    },
  },
  {
    name: "opens a session any number of times, and resumes it once",
    async run({ store, manager }) {
      const desk = manager({ config: { maxTurnsPerSession: 3 } });
      const events = eventsOf(desk);
      await desk.create({ userId: "ann", id: "s" });
      await desk.suspend("s");
      const [tree] = await Promise.all([desk.open("s"), desk.open("s"), desk.open("s")]);
      expect(events.filter(({ type }) => type === "resumed")).toHaveLength(1);
      await tree?.appendMessage({ role: "user", content: "one" }, { id: "one" });
      await tree?.appendMessage({ role: "user", content: "one" }, { id: "one" });
      await Promise.all([1, 2].map((n) => tree?.appendMessage({ role: "user", content: `${n}` })));
      expect(events.filter(({ type }) => type === "turnAdded")).toHaveLength(3);
      const full = await refusal(store, async () => tree?.appendMessage({ role: "user", content: "four" }));
      expect(full).toMatchObject({ code: "CAPACITY", limit: 3 });
      await desk.close("s");
      expect((await refusal(store, async () => tree?.setName("late"))).code).toBe("SESSION_CLOSED");
    },
  },
  {
    name: "restores a checkpoint without deleting entries, and forks from one",
    async run({ store, manager }) {
      const desk = manager();
      const events = eventsOf(desk);
      await desk.create({ userId: "ann", id: "s" });
      await desk.addTurn("s", { role: "user", content: "one", turnId: "one" });
      const { id } = await desk.checkpoint("s", { metadata: { why: "before" } });
      await desk.addTurn("s", { role: "assistant", content: "two", tokensUsed: 9 });
      expect(await desk.getState("s")).toMatchObject({ totalTokens: 9, checkpointId: id });
      const restored = await desk.restore(id);
      expect(restored).toMatchObject({ status: "active", turnCount: 1, totalTokens: 0, leafId: "one", version: 3 });
      expect(restored.spent.totalTokens).toBe(9);
      const branch = await desk.fork("s", "again", { fromCheckpoint: id });
      expect(branch).toMatchObject({ status: "active", parentSessionId: "s", branchName: "again", turnCount: 1 });
      await desk.addTurn(branch.sessionId, { role: "user", content: "aside" });
      const merged = await desk.merge("s", branch.sessionId);
      expect(merged.state.turns.map(({ content }) => content)).toEqual(["one", "aside"]);
      expect(events.map(({ type }) => type)).toEqual([
        ...["created", "turnAdded", "checkpointCreated", "turnAdded", "restored", "forked", "turnAdded", "merged"],
      ]);
      expect(events.at(-1)).toMatchObject({ sessionId: "s", branchId: branch.sessionId, appended: 1 });
      await desk.delete("s");
      expect(await store.loadCheckpoint(id)).toBeNull();
      await store.undelete("s");
      expect(await store.listCheckpoints("s")).toEqual([]);
    },
  },
  {
    name: "restores files together with the conversation, or neither, and frees them with the session",
    async run({ store, manager }) {
      const failures: unknown[] = [];
      const desk = manager({ onError: (error, { during }) => failures.push([during, error]) });
      const backend = new CountedBackend();
      const sandbox = await backend.open({});
      const text = async () => new TextDecoder().decode(await sandbox.readFile("plan.txt"));
      for (const id of ["s", "other"]) await desk.create({ userId: "ann", id });
      await desk.addTurn("s", { role: "user", content: "one" });
      await sandbox.writeFile("plan.txt", "draft");
      const { id } = await desk.checkpoint("s", { sandbox });
      await desk.checkpoint("other", { sandbox });
      await desk.addTurn("s", { role: "user", content: "two" });
      await sandbox.writeFile("plan.txt", "worse");
      backend.failAt("restore", new Error("the disk is away"));
      await refusal(store, () => desk.restore(id, { sandbox }));
      await desk.suspend("s");
      backend.before = async () => {};
      await refusal(store, () => desk.restore(id, { sandbox }));
      expect(await text()).toBe("worse");
      await desk.resume("s");
      expect(await desk.restore(id)).toMatchObject({ turnCount: 1 });
      expect(await text()).toBe("worse");
      expect(await desk.restore(id, { sandbox })).toMatchObject({ turnCount: 1 });
      expect(await text()).toBe("draft");
      expect(await desk.delete("s")).toBe(true);
      expect(backend.snapshots.size).toBe(1);
      const away = new Error("the disk is away");
      backend.failAt("delete-snapshot", away);
      expect(await desk.delete("other")).toBe(true);
      expect(failures).toEqual([["delete", away]]);
    },
  },
];
