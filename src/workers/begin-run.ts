import type { Agent } from "../agent/agent.ts";
import type { ParkOptions } from "../agent/loop-options.ts";
import type { Model } from "../agent/model/model.ts";
import type { SessionRun } from "../agent/session-run.ts";
import type { AskPolicy } from "../agent/tools/ask-policy.ts";
import type { GroupRun } from "../group/group-run.ts";
import type { GroupSession } from "../group/group-session.ts";
import type { DueRun } from "../lifecycle/runs/due-run.ts";
import type { SessionManager } from "../lifecycle/session-manager.ts";
import { SessionError, show } from "../session/errors.ts";
import { type SessionHead, inheritedCount } from "../session/log/fold.ts";
import { Session } from "../session/value/session.ts";
import { stricterPlacement } from "../sandboxes/stricter-spec.ts";
import { knownPlacement } from "../tree/read-session.ts";
import type { PlaceOf } from "./user-places.ts";
import { GROUP_KEY } from "../session/log/group-state.ts";
import type { OpenRun } from "../session/log/open-runs.ts";
import type { JsonObject } from "../internal/json.ts";
import type { SessionStore } from "../session/store.ts";

/** What runs are begun with. */
export interface Beginning {
  readonly manager: SessionManager;
  readonly agents: ReadonlyMap<string, Agent>;
  readonly groups: ReadonlyMap<string, GroupSession>;
  readonly models: ReadonlyMap<string, Model>;
  readonly placeOf: PlaceOf;
  readonly ask: AskPolicy | undefined;
  readonly park: ParkOptions;
  readonly leaseMs: number;
}

/** A run that has its session. */
export interface BegunRun {
  readonly runId: string;
  readonly run: SessionRun | GroupRun;
  /** Settles when it has ended or parked, and nothing of it is open here any more. */
  readonly done: Promise<void>;
}

/**
 * Begins a run that is due, or goes on with it; null where someone else has it by now.
 *
 * @throws {SessionError} `AGENT_NOT_FOUND` or `MODEL_NOT_FOUND` for a run that needs what is not here; it stays.
 */
export async function beginRun(
  init: Beginning,
  due: DueRun,
  mayBegin: () => Promise<boolean> = async () => true,
): Promise<BegunRun | null> {
  const { head, request, agent } = due;
  const origin = request === null && agent === null ? await readRunOrigin(init.manager.store, head) : null;
  const group = request?.group ?? origin?.group ?? null;
  return group === null
    ? beginAgent(init, due, { origin: origin?.agent ?? null, mayBegin })
    : beginGroup(init, due, group);
}

async function beginAgent(
  init: Beginning,
  due: DueRun,
  { origin, mayBegin }: { readonly origin: string | null; readonly mayBegin: () => Promise<boolean> },
): Promise<BegunRun | null> {
  const { manager, agents, models, ask, park, leaseMs } = init;
  const { head } = due;
  const [only = null, ...others] = agents.values();
  const agentOf = (name: string | null, { state }: OpenRun): Agent | null => {
    const wanted = name ?? origin;
    if (wanted !== null) return agents.get(wanted) ?? null;
    // Whoever asked left it to the only agent there is. A run that has begun without a name may be any program's.
    return state === "requested" && others.length === 0 ? only : null;
  };
  let input: Session | null = null;
  const found = await manager.recover(head.header.id, agentOf, {
    models: (id) => models.get(id) ?? null,
    park,
    leaseMs,
    mayBegin,
    due,
    ...(ask && { ask }),
    place: (session) => {
      input = placed(init, session, head);
      return input;
    },
  });
  if (found === null) return null;
  const { run } = found;
  const done = run.synchronize().then(async (output) => {
    // What a parked run has is left to whoever goes on with it, as after a failure; nobody else gets the rest.
    if (run.status !== "parked") await Promise.allSettled([output.closeSandbox(), input?.closeSandbox()]);
  });
  return { runId: run.runId, run, done };
}

async function beginGroup(
  init: Beginning,
  { head, run: { runId }, request }: DueRun,
  name: string,
): Promise<BegunRun | null> {
  const { groups, ask, leaseMs } = init;
  const [only, ...others] = groups.values();
  const group = groups.get(name) ?? (name === "" && others.length === 0 ? only : undefined);
  if (group === undefined) {
    const text = `Run ${show(runId)} of session ${head.header.id} is for group ${show(name)}, which is not here.`;
    throw new SessionError("AGENT_NOT_FOUND", text);
  }
  const deadline = request?.deadline === undefined ? {} : { deadline: request.deadline };
  const run = group.stream(head.header.id, null, {
    runId,
    turns: false,
    leaseMs,
    // People answer from elsewhere, as over HTTP.
    park: false,
    // The agents of a group act where their session says, or nowhere.
    place: (session) => (session.sandboxPlacement === null ? session : placed(init, session, head)),
    ...deadline,
    ...(ask && { ask }),
  });
  const done = Promise.resolve(run).then(() => {});
  const admitted = new Promise<void>((resolve) => {
    run.listen(({ type }) => type === "group-started" && resolve());
  });
  try {
    await Promise.race([admitted, done]);
  } catch (error) {
    const late = error instanceof SessionError && ["SESSION_BUSY", "CONFLICT", "RUN_ENDED"].includes(error.code);
    if (late) return null;
    throw error;
  }
  return { runId, run, done };
}

/**
 * What a run begins with, at the place that the session's log recorded, with no more than the program allows the session's
 * user, or else at the program's place for that user.
 */
function placed({ placeOf }: Beginning, input: Session, { header }: SessionHead): Session {
  const recorded = input.sandboxPlacement ?? knownPlacement(header.sandbox);
  const placement = stricterPlacement(placeOf(header.userId), recorded);
  if (placement !== null) Session.aim(input, placement);
  return input;
}

/** The key under which the input of a run names who answers it, in logs of the first version. */
const RUN_KEY = "skein.run";
const ENTRIES_MAX = 10_000;

/** Who was asked in a run that has no request; null where the log does not say, and an empty group for one without a name. */
interface RunOrigin {
  readonly agent: string | null;
  readonly group: string | null;
}

/**
 * Who was asked in the latest run that a session itself has started. Reads the log backward, as far as the run's input;
 * whom others asked, before a fork or in a file that was imported, is not looked at.
 */
export async function readRunOrigin(store: SessionStore, { header }: SessionHead): Promise<RunOrigin> {
  const own = { after: inheritedCount(header) - 1, reverse: true, limit: ENTRIES_MAX };
  for await (const entry of store.read(header.id, own)) {
    if (entry.type !== "message" || entry.message.role !== "user" || entry.inherited === true) continue;
    const { metadata = {} } = entry.message;
    const asked = objectOf(metadata[RUN_KEY]);
    const [agent, group] = [textOf(asked.agent), textOf(asked.group)];
    if (group !== null || objectOf(metadata[GROUP_KEY]).kind === "message") return { agent: null, group: group ?? "" };
    if (agent !== null) return { agent, group: null };
  }
  return { agent: null, group: null };
}

function objectOf(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? (value as JsonObject) : {};
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
