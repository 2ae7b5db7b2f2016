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
import { type SessionHead, inheritedCount, isOwn } from "../session/log/fold.ts";
import { Session } from "../session/value/session.ts";
import { stricterPlacement } from "../sandboxes/stricter-spec.ts";
import { knownPlacement } from "../tree/read-session.ts";
import type { PlaceOf } from "./user-places.ts";
import { GROUP_KEY } from "../session/log/group-state.ts";
import { hasBegun } from "../session/log/run-fold.ts";
import type { OpenRun } from "../session/log/open-runs.ts";
import type { JsonObject } from "../internal/json.ts";
import type { SessionStore } from "../session/store.ts";

/** The options of `beginRun`. */
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

/** A started run. */
export interface BegunRun {
  readonly runId: string;
  readonly run: SessionRun | GroupRun;
  /** Settles when the run has ended or parked and has released all resources here. */
  readonly done: Promise<void>;
}

/**
 * Starts or continues a run that is due; null if another worker has it by now.
 *
 * @throws {SessionError} `AGENT_NOT_FOUND` or `MODEL_NOT_FOUND` for a run that needs an agent or a model that is not
 * here; the run stays open.
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
  const agentOf = (name: string | null, run: OpenRun): Agent | null => {
    const wanted = name ?? origin;
    if (wanted !== null) return agents.get(wanted) ?? null;
    // The request named no agent, so the only one takes it. A started run without a name may belong to any program.
    return !hasBegun(run) && others.length === 0 ? only : null;
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
    // The resources of a parked run are left to the worker that continues it, as after a failure; otherwise they are
    // released here.
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
  // A run whose log names no group may belong to any program; it is never given to a worker's only group.
  const group = name === "" ? undefined : groups.get(name);
  if (group === undefined) {
    const which = `Run ${show(runId)} of session ${head.header.id}`;
    throw new SessionError(
      "AGENT_NOT_FOUND",
      name === ""
        ? `${which} is a group's and names none; let the program that has the group go on with GroupSession.resume.`
        : `${which} is for group ${show(name)}, which is not here.`,
    );
  }
  const deadline = request?.deadline === undefined ? {} : { deadline: request.deadline };
  const run = group.stream(head.header.id, null, {
    runId,
    turns: false,
    leaseMs,
    // Answers come from other processes, for example over HTTP.
    park: false,
    // The agents of a group act in the session's sandbox placement, if it has one.
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
 * The input of a run, with the sandbox placement recorded in the session's log, limited to what the program allows the
 * session's user; otherwise with the program's placement for that user.
 */
function placed({ placeOf }: Beginning, input: Session, { header }: SessionHead): Session {
  const recorded = input.sandboxPlacement ?? knownPlacement(header.sandbox);
  const placement = stricterPlacement(placeOf(header.userId), recorded);
  if (placement !== null) Session.aim(input, placement);
  return input;
}

/** The key under which the input of a run names its agent, in logs of the first version. */
const RUN_KEY = "skein.run";
const ENTRIES_MAX = 10_000;

/**
 * The agent of a run without a request; null if the log does not record it, and an empty group for one without a name.
 */
interface RunOrigin {
  readonly agent: string | null;
  readonly group: string | null;
}

/**
 * The agent of the latest run that the session itself has started. Reads the log backward to the run's input; inherited
 * entries are ignored.
 */
export async function readRunOrigin(store: SessionStore, { header }: SessionHead): Promise<RunOrigin> {
  const own = { after: inheritedCount(header) - 1, reverse: true, limit: ENTRIES_MAX };
  for await (const entry of store.read(header.id, own)) {
    if (entry.type !== "message" || entry.message.role !== "user" || !isOwn(header, entry, entry.seq)) continue;
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
