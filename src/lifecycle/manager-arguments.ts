import { LOOP_HABITS, LOOP_KEYS } from "../agent/loop-options.ts";
import { checkOptionsOf, type Habits, type KeysOf } from "../session/check-arguments.ts";
import { SessionError } from "../session/errors.ts";
import type { Sandbox } from "../session/sandbox/sandbox.ts";
import type { SessionQuery } from "../session/store.ts";
import type { ActorOptions } from "./access.ts";
import type { HealthOptions } from "./check-health.ts";
import type { CheckpointInit } from "./checkpoints/checkpoint-manager.ts";
import type { CreateSession } from "./create-session.ts";
import type { EraseOptions } from "./erase/erase-report.ts";
import type { HeadOptions } from "./managed-sessions.ts";
import type { ManagedForkOptions, ManagedStateOptions } from "./manager-options.ts";
import type { MergeStrategy } from "./merge/merge-strategy.ts";
import type { RunsQuery } from "./runs/list-runs.ts";
import type { ManagedRunOptions, NewRunOptions } from "./runs/manage-run.ts";
import type { ApproveOptions, CancelRun, DenyOptions, ManagedRunRequest, RequestOptions } from "./runs/managed-runs.ts";
import type { RecoverOptions } from "./runs/recover-run.ts";
import type { SweepOptions } from "./sweeper.ts";

type Keys = Readonly<Record<string, true>>;

const ACTOR: KeysOf<ActorOptions> = { actor: true };
const STATE: KeysOf<ManagedStateOptions> = { actor: true, turns: true, checkpoint: true, charactersMax: true };
const { persist: _persist, ...LOOP } = LOOP_KEYS;
/** The keys of the options of a run in an existing session. */
export const RUN: KeysOf<ManagedRunOptions> = {
  ...LOOP,
  ...ACTOR,
  ifBusy: true,
  waitMs: true,
  workspace: true,
  place: true,
  before: true,
};
const { runId: _id, ifBusy: _ifBusy, waitMs: _waitMs, before: _before, ...BEGIN } = RUN;
const NEW_RUN: KeysOf<NewRunOptions> = { ...BEGIN, userId: true };
const { runId: _runId, ...RECOVERED } = LOOP;
const RECOVER: KeysOf<RecoverOptions> = {
  ...RECOVERED,
  ...ACTOR,
  models: true,
  place: true,
  mayBegin: true,
  due: true,
};
const REQUEST: KeysOf<ManagedRunRequest> = {
  agent: true,
  group: true,
  input: true,
  from: true,
  runId: true,
  model: true,
  options: true,
  notBefore: true,
  deadline: true,
  ifBusy: true,
};
const REQUESTING: KeysOf<RequestOptions> = { ...ACTOR, head: true };
const CREATE: KeysOf<CreateSession> = {
  userId: true,
  metadata: true,
  cwd: true,
  id: true,
  systemPrompt: true,
  sandbox: true,
};
const LIST: KeysOf<SessionQuery> = {
  userId: true,
  cwd: true,
  status: true,
  parentId: true,
  runs: true,
  dueBefore: true,
  deleted: true,
  limit: true,
  cursor: true,
};
const FORK: KeysOf<ManagedForkOptions> = { ...STATE, fromCheckpoint: true, at: true, counted: true };
const MERGE: KeysOf<ManagedStateOptions & { strategy: MergeStrategy; dryRun: boolean }> = {
  ...STATE,
  strategy: true,
  dryRun: true,
};
const ERASE: KeysOf<EraseOptions> = { forks: true, dryRun: true, rewrite: true, onProgress: true, signal: true };
const CHECKPOINT: KeysOf<ActorOptions & Pick<CheckpointInit, "metadata" | "sandbox" | "spare">> = {
  actor: true,
  metadata: true,
  sandbox: true,
  spare: true,
};
const RUNS: KeysOf<RunsQuery> = { state: true, userId: true, limit: true, cursor: true };
const APPROVAL: KeysOf<ApproveOptions> = { note: true };
const DENIAL: KeysOf<DenyOptions> = { note: true, reason: true };
const CANCEL: KeysOf<CancelRun> = { runId: true, reason: true };
const HEAD: KeysOf<HeadOptions> = { actor: true, gather: true };
const OPEN: KeysOf<ActorOptions & { resume: boolean }> = { actor: true, resume: true };
const CLOSE: KeysOf<ActorOptions & { reason: string }> = { actor: true, reason: true };
const RESTORE: KeysOf<ManagedStateOptions & { sandbox: Sandbox }> = { ...STATE, sandbox: true };
const SWEEP: KeysOf<SweepOptions> = { limit: true };
const HEALTH: KeysOf<HealthOptions> = { timeoutMs: true };

/** The allowed keys of each options argument of a manager's methods; null for other arguments. */
export const MANAGER_ARGUMENTS: Readonly<Record<string, readonly (Keys | null)[]>> = {
  create: [CREATE, ACTOR],
  resume: [null, STATE],
  open: [null, OPEN],
  addTurn: [null, null, ACTOR],
  head: [null, HEAD],
  getState: [null, STATE],
  list: [LIST, ACTOR],
  suspend: [null, STATE],
  close: [null, CLOSE],
  delete: [null, ACTOR],
  exportUser: [null, {}],
  erase: [{ userId: true, sessionId: true }, ERASE],
  checkpoint: [null, CHECKPOINT],
  restore: [null, RESTORE],
  fork: [null, null, FORK],
  merge: [null, null, MERGE],
  request: [null, REQUEST, REQUESTING],
  cancel: [null, CANCEL, ACTOR],
  steer: [null, null, ACTOR],
  followUp: [null, null, ACTOR],
  approve: [null, null, APPROVAL, ACTOR],
  deny: [null, null, DENIAL, ACTOR],
  runs: [RUNS, ACTOR],
  due: [null, ACTOR],
  recover: [null, null, RECOVER],
  sweep: [SWEEP],
  health: [HEALTH],
  settled: [HEALTH],
};

const IN_SESSION = "the session to continue is the first argument: run(sessionId, agent, input)";

/** Options of other libraries for which `run` has another name, with what to write instead. */
export const RUN_HABITS: Habits = {
  ...LOOP_HABITS,
  persist: "a manager stores every run; name its store with openManager({ store })",
  cwd: "the directory that tools act in is workspace",
  session: IN_SESSION,
  sessionId: IN_SESSION,
  threadId: IN_SESSION,
  thread_id: IN_SESSION,
  conversationId: IN_SESSION,
};

/** @throws {SessionError} `INVALID_OPTION` for options that a run in a new session does not accept. */
export function checkNewRun(options: NewRunOptions): void {
  if (typeof options === "object" && options !== null && "runId" in options) {
    throw new SessionError(
      "INVALID_OPTION",
      "runId needs a session, in which the same runId is the same run; give the session's id first: run(sessionId, agent, input, { runId }).",
    );
  }
  checkOptionsOf(options, NEW_RUN, "run", RUN_HABITS);
}

/** The methods that throw synchronously instead of rejecting. */
const SYNCHRONOUS: ReadonlySet<string> = new Set(["exportUser"]);

/** Wraps the methods of a class so that they check the keys of their arguments first. */
export function checkArgumentsOf(prototype: object, methods: Readonly<Record<string, readonly (Keys | null)[]>>): void {
  const target = prototype as Record<string, (...values: unknown[]) => unknown>;
  for (const [name, keys] of Object.entries(methods)) {
    const method = target[name] as (...values: unknown[]) => unknown;
    const checked = function (this: unknown, ...values: unknown[]): unknown {
      try {
        for (const [index, known] of keys.entries())
          if (known !== null && values[index] !== undefined) checkOptionsOf(values[index], known, name);
      } catch (error) {
        if (SYNCHRONOUS.has(name)) throw error;
        return Promise.reject(error);
      }
      return method.apply(this, values);
    };
    Object.defineProperty(target, name, { value: checked, writable: true, configurable: true });
  }
}
