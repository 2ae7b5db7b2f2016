import { defined } from "../../internal/defined.ts";
import type { Agent } from "../../agent/agent.ts";
import { checkLoopOptions } from "../../agent/check-options.ts";
import type { LoopOptions } from "../../agent/loop-options.ts";
import type { Model } from "../../agent/model/model.ts";
import { openTreeSink } from "../../agent/persist/open-run-sink.ts";
import { errorRecord } from "../../agent/run-error.ts";
import { resumeSession } from "../../agent/persist/resume-session.ts";
import { resumeStateOf } from "../../agent/persist/resume-state.ts";
import type { SinkRequest } from "../../agent/persist/run-sink.ts";
import type { SessionRun } from "../../agent/session-run.ts";
import { SessionBusyError, SessionCapacityError, SessionError, show } from "../../session/errors.ts";
import type { Session } from "../../session/value/session.ts";
import type { ActorOptions } from "../access.ts";
import { type DueRun, findDueRun } from "./due-run.ts";
import { inputSession, type ManagedRun, ringingAfter } from "./manage-run.ts";

const TRIES_MAX = 10;

/** Agents by the names under which runs are asked for; a function is also asked with null, for runs that name none. */
export type AgentsByName =
  | Readonly<Record<string, Agent>>
  | ReadonlyMap<string, Agent>
  | ((name: string | null) => Agent | null | undefined);

/** How a run is taken up. What a loop takes goes before what the request says, which goes before the agent's own. */
export interface RecoverOptions extends Omit<Partial<LoopOptions>, "persist" | "runId">, ActorOptions {
  /** The models that a request may name, as `provider/id`. */
  readonly models?: (id: string) => Model | null;
  /** Gives what the run begins with another place for its tools. */
  readonly place?: (input: Session) => Session;
}

/** How a claim fails that came too late; one that took longer than its lease holds is among them. */
const LATE: ReadonlySet<string> = new Set(["CONFLICT", "RUN_ENDED", "LEASE_LOST"]);

/** A run that was taken up; in a box, since a run can be awaited. */
export interface RecoveredRun {
  readonly run: SessionRun;
}

/**
 * Takes up the run of a session that is due: goes on with one whose process is gone or whose questions are answered, under
 * the same id, or begins one that was asked for. Null where nothing is due, or someone else has it.
 */
export async function recoverRun(
  init: ManagedRun,
  agents: AgentsByName,
  options: RecoverOptions,
): Promise<RecoveredRun | null> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const due = await findDueRun(init, init.sessionId, options);
    if (due === null) return null;
    try {
      const started = await start(init, due, agents, options);
      if (started === null) continue;
      await started.run.admitted;
      return started;
    } catch (error) {
      if (error instanceof SessionBusyError) return null;
      if (error instanceof SessionCapacityError) await endRequest(init, due, error);
      // Someone went on meanwhile, or it was ended here because it got nowhere: what is due now is another matter.
      if (!(error instanceof SessionError && LATE.has(error.code))) throw error;
    }
  }
  return null;
}

/** The run, claimed only if nothing was done about any since it was found; null where the session has changed by now. */
async function start(
  init: ManagedRun,
  due: DueRun,
  agents: AgentsByName,
  options: RecoverOptions,
): Promise<RecoveredRun | null> {
  const { head, request, run } = due;
  const { actor: _actor, models, place = (session) => session, ...loop } = options;
  const agent = agentFor(due, agents);
  const asked: Partial<LoopOptions> = request?.options ?? {};
  try {
    // By themselves, so that only what the request says is held against it.
    checkLoopOptions({ ...asked, model: agent.model });
  } catch (error) {
    await endRequest(init, due, error);
    throw error;
  }
  const named = request?.model;
  const model = named === undefined || loop.model !== undefined ? {} : { model: modelFor(due, named, models) };
  const input = await inputOf(init, due);
  if (input === null) return null;
  const openSink = async (sink: SinkRequest) => openTreeSink(await init.open(), { ...sink, version: head.version });
  const started = agent.run(place(input), {
    ...asked,
    ...defined({ deadline: request?.deadline }),
    ...loop,
    ...model,
    runId: run.runId,
    persist: { openSink },
  });
  return { run: ringingAfter(init, started) };
}

/**
 * Ends a requested run that can never begin, since the session has no room for its input or the request has options that
 * cannot work: those that wait behind it must not wait for it.
 */
async function endRequest({ store }: ManagedRun, { run, head }: DueRun, error: unknown): Promise<void> {
  if (run.state !== "requested") return;
  const failed = { type: "run", runId: run.runId, phase: "failed", error: errorRecord(error) } as const;
  await store.append(head.header.id, [failed], { expectedVersion: head.version }).catch(() => {});
}

/** What a due run starts from: its input, or all that was said where it had begun. */
async function inputOf({ store, sessionId }: ManagedRun, { run, request, head }: DueRun) {
  if (run.state === "requested" && request !== null) return inputSession(run.runId, request.input);
  const { user } = await resumeSession({ store, sessionId });
  const known = resumeStateOf(user.transcript)?.version ?? head.version;
  return known === head.version ? user : null;
}

/** @throws {SessionError} `AGENT_NOT_FOUND`; the run stays as it is. */
function agentFor({ run, request, head }: DueRun, agents: AgentsByName): Agent {
  const { agent: name = null, group } = request ?? {};
  const which = `Run ${show(run.runId)} of session ${head.header.id}`;
  if (group !== undefined) {
    throw new SessionError(
      "AGENT_NOT_FOUND",
      `${which} is for group ${show(group)}; let that go on with GroupSession.stream(sessionId, null, { runId }).`,
    );
  }
  const agent = lookUp(agents, name);
  if (agent !== null) return agent;
  throw new SessionError(
    "AGENT_NOT_FOUND",
    name === null
      ? `${which} names no agent, and there is not exactly one here; give the one that is to answer.`
      : `${which} is for agent ${show(name)}, which is not here; give it to recover.`,
  );
}

function lookUp(agents: AgentsByName, name: string | null): Agent | null {
  if (typeof agents === "function") return agents(name) ?? null;
  const known = agents instanceof Map ? agents : new Map(Object.entries(agents));
  if (name !== null) return known.get(name) ?? null;
  const [only, ...others] = known.values();
  return others.length === 0 ? (only ?? null) : null;
}

/** @throws {SessionError} `MODEL_NOT_FOUND`; the run stays as it is. */
function modelFor({ run, head }: DueRun, id: string, models: RecoverOptions["models"]): Model {
  const model = models?.(id) ?? null;
  if (model !== null) return model;
  throw new SessionError(
    "MODEL_NOT_FOUND",
    `Run ${show(run.runId)} of session ${head.header.id} is for model ${show(id)}, which is not here; give it in models.`,
  );
}
