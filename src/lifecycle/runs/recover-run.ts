import { checkArgument, isObject } from "../../session/check-arguments.ts";
import { defined } from "../../internal/defined.ts";
import { type Agent, checkIsAgent } from "../../agent/agent.ts";
import { checkLoopOptions } from "../../agent/check-options.ts";
import type { LoopOptions } from "../../agent/loop-options.ts";
import type { Model } from "../../agent/model/model.ts";
import type { WithModelName } from "../../agent/model/named-model.ts";
import { openTreeLog } from "../../agent/persist/open-run-log.ts";
import { errorRecord } from "../../agent/run-error.ts";
import { requestedOptions } from "./managed-runs.ts";
import { resumeSession } from "../../agent/persist/resume-session.ts";
import { resumeStateOf } from "../../agent/persist/resume-state.ts";
import type { LogRequest } from "../../agent/persist/persist-option.ts";
import type { SessionRun } from "../../agent/session-run.ts";
import {
  SessionBusyError,
  SessionCapacityError,
  SessionConflictError,
  SessionError,
  show,
} from "../../session/errors.ts";
import { answeredBy } from "../../tree/answered-by.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionStore } from "../../session/store.ts";
import { hasBegun } from "../../session/log/run-fold.ts";
import type { OpenRun } from "../../session/log/open-runs.ts";
import type { Session } from "../../session/value/session.ts";
import type { ActorOptions } from "../access.ts";
import { type DueRun, findDueRun } from "./due-run.ts";
import { inputSession, type ManagedRun, wakingAfter } from "./manage-run.ts";

const TRIES_MAX = 10;

/** Agents by name, or a list of agents with names. A function is called with null for runs whose log names no agent. */
export type AgentsByName =
  | readonly Agent[]
  | Readonly<Record<string, Agent>>
  | ReadonlyMap<string, Agent>
  | ((name: string | null, run: OpenRun) => Agent | null | undefined);

/** Options for recovering a run. Loop options override those of the request, which override the agent's own. */
export interface RecoverOptions extends WithModelName<Omit<Partial<LoopOptions>, "persist" | "runId">>, ActorOptions {
  /** Finds the models that a request may name, as `provider/id`. */
  readonly models?: (id: string) => Model | null;
  /** Sets the sandbox placement of the run's input. */
  readonly place?: (input: Session) => Session;
  /**
   * Called once the run holds its session, before it does anything. If it returns false, the run releases the session
   * and is due again.
   */
  readonly mayBegin?: () => Promise<boolean>;
  /** The result of `manager.due` for the session, so that it is not looked up again. */
  readonly due?: DueRun;
}

/** The errors of a claim that came too late, or took longer than its lease. */
const LATE: ReadonlySet<string> = new Set(["CONFLICT", "RUN_ENDED", "LEASE_LOST"]);

/** A recovered run, wrapped in an object, because a run is itself awaitable. */
export interface RecoveredRun {
  readonly run: SessionRun;
}

/**
 * Recovers the due run of a session: continues one whose process has died or whose questions are answered, under the
 * same id, or starts a requested one. Null if none is due, or if another process holds it.
 */
export async function recoverRun(
  init: ManagedRun,
  agents: AgentsByName,
  options: RecoverOptions,
): Promise<RecoveredRun | null> {
  checkRecovery(agents, options);
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const known = tries === 0 ? options.due : undefined;
    const due = known ?? (await findDueRun(init, init.sessionId, options));
    if (due === null) return null;
    try {
      const started = await start(init, due, agents, options);
      if (started === null) continue;
      await started.run.admitted;
      return started;
    } catch (error) {
      if (error instanceof SessionBusyError) return null;
      // A started run has its input in the session already, so it needs no room for that.
      if (error instanceof SessionCapacityError && !hasBegun(due.run)) await endRun(init, due, error);
      // Another process has continued it in the meantime, or its end was recorded here because it made no progress:
      // something else may be due now.
      if (!(error instanceof SessionError && LATE.has(error.code))) throw error;
    }
  }
  return null;
}

/** @throws {SessionError} `INVALID_OPTION` unless the agents and the functions in the options have the right types. */
function checkRecovery(agents: AgentsByName, { due, place, models, mayBegin }: RecoverOptions): void {
  const isAgents = typeof agents === "function" || (typeof agents === "object" && agents !== null && !isAgent(agents));
  checkArgument(isAgents, agents, "recover", "agents by name, such as { helper: agent }, or a list of agents");
  if (typeof agents !== "function") for (const agent of byName(agents).values()) checkIsAgent(agent, "recover");
  checkArgument(due === undefined || isObject(due?.run), due, "recover", "a result of manager.due in due");
  for (const [name, value] of Object.entries({ place, models, mayBegin }))
    checkArgument(value === undefined || typeof value === "function", value, "recover", `a function in ${name}`);
}

/** Starts the run; it is claimed only if no run has changed since it was found. Null if the session has changed. */
async function start(
  init: ManagedRun,
  due: DueRun,
  agents: AgentsByName,
  options: RecoverOptions,
): Promise<RecoveredRun | null> {
  const { head, request, run } = due;
  const { actor: _actor, due: _due, models, place = (session) => session, mayBegin, ...loop } = options;
  const agent = agentFor(due, agents);
  if (agent.model.unnamed === true && request?.model === undefined && loop.model === undefined)
    await checkUnnamed(init.store, head);
  const asked = requestedOptions(request ?? {});
  try {
    // Checked separately, so that an error concerns only the options of the request.
    checkLoopOptions({ ...asked, model: agent.model });
  } catch (error) {
    await endRun(init, due, error);
    throw error;
  }
  const named = request?.model;
  const model = named === undefined || loop.model !== undefined ? {} : { model: modelFor(due, named, models) };
  const input = await inputOf(init, due);
  if (input === null) return null;
  const payer = init.budgets?.payerIn(head, await askedBy(init.store, due)) ?? null;
  const openLog = async (given: LogRequest): Promise<void> => {
    const request = { ...given, version: head.version, payer, ...defined({ mayBegin }) };
    try {
      await openTreeLog(await init.open(head), { ...request, head });
    } catch (error) {
      // Others have appended since the run was found: the session is read again.
      if (!(error instanceof SessionConflictError)) throw error;
      await openTreeLog(await init.open(), request);
    }
  };
  const placed = place(input);
  if (init.workspace !== null && placed.sandboxBackend === null) placed.to("local", init.workspace);
  const started = agent.run(placed, {
    ...asked,
    ...defined({ deadline: request?.deadline }),
    ...loop,
    ...model,
    runId: run.runId,
    persist: { openLog },
  });
  return { run: wakingAfter(init, started) };
}

/** The user who asked for a run: by a request, or with the entry that it began with. */
async function askedBy(store: SessionStore, { request, run, head }: DueRun): Promise<string | undefined> {
  if (request !== null || run.first === undefined) return request?.by;
  const [entry] = await store.readJson(head.header.id, { after: run.first - 1, limit: 1 });
  return entry === undefined ? undefined : (JSON.parse(entry) as Entry).by;
}

/**
 * Ends a run that can never start or continue, because the session has no room for its input or the request has invalid
 * options. Otherwise later runs would wait for it, and workers would retry it forever.
 */
async function endRun({ store }: ManagedRun, { run, head }: DueRun, error: unknown): Promise<void> {
  const failed = { type: "run", runId: run.runId, phase: "failed", error: errorRecord(error) } as const;
  await store.append(head.header.id, [failed], { expectedVersion: head.version }).catch(() => {});
}

/** The input of a due run, or the messages of the session if it has started. */
async function inputOf({ store, sessionId }: ManagedRun, { run, request, head }: DueRun) {
  if (!hasBegun(run) && request !== null) return inputSession(run.runId, request);
  const { user } = await resumeSession({ store, sessionId });
  const known = resumeStateOf(user.transcript)?.version ?? head.version;
  return known === head.version ? user : null;
}

/** @throws {SessionError} `AGENT_NOT_FOUND`; the run stays open. */
function agentFor({ run, request, agent: name, head }: DueRun, agents: AgentsByName): Agent {
  const { group } = request ?? {};
  const which = `Run ${show(run.runId)} of session ${head.header.id}`;
  if (group !== undefined) {
    throw new SessionError(
      "AGENT_NOT_FOUND",
      `${which} is for group ${show(group)}; recover it with GroupSession.stream(sessionId, null, { runId }).`,
    );
  }
  const agent = lookUp(agents, name, run);
  if (agent !== null) return agent;
  throw new SessionError(
    "AGENT_NOT_FOUND",
    name === null
      ? `${which} names no agent, so that none is taken for it by itself; hand over the one that is to answer.`
      : `${which} is for agent ${show(name)}, which this program does not have; continue it in a program that has it.`,
  );
}

function lookUp(agents: AgentsByName, name: string | null, run: OpenRun): Agent | null {
  if (typeof agents === "function") return agents(name, run) ?? null;
  const known = byName(agents);
  if (name !== null) return known.get(name) ?? null;
  const [only, ...others] = known.values();
  return others.length === 0 ? (only ?? null) : null;
}

function byName(agents: Exclude<AgentsByName, (...given: never) => unknown>): ReadonlyMap<string | null, Agent> {
  if (agents instanceof Map) return agents;
  if (Array.isArray(agents)) return new Map(agents.map((agent) => [agent?.name ?? null, agent]));
  return new Map(Object.entries(agents));
}

function isAgent(given: object): boolean {
  return "run" in given && typeof given.run === "function";
}

/**
 * @throws {SessionError} `MODEL_NOT_FOUND` if a default model that was not chosen explicitly would continue a session that another
 * model has answered.
 */
export async function checkUnnamed(store: SessionStore, head: SessionHead): Promise<void> {
  const { byAnother, model } = await answeredBy(store, head);
  if (!byAnother) return;
  const who = model === null ? "a model that its log does not name" : model;
  throw new SessionError(
    "MODEL_NOT_FOUND",
    `Session ${head.header.id} was answered by ${who}, and nobody named the offline model for it; name the model to ask, or set the key of one.`,
  );
}

/** @throws {SessionError} `MODEL_NOT_FOUND`; the run stays open. */
function modelFor({ run, head }: DueRun, id: string, models: RecoverOptions["models"]): Model {
  const model = models?.(id) ?? null;
  if (model !== null) return model;
  throw new SessionError(
    "MODEL_NOT_FOUND",
    `Run ${show(run.runId)} of session ${head.header.id} is for model ${show(id)}, which is not here; give it in models.`,
  );
}
