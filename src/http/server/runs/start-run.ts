import type { Agent } from "../../../agent/agent.ts";
import type { Model } from "../../../agent/model.ts";
import type { SessionRun } from "../../../agent/session-run.ts";
import type { Unasked } from "../../../agent/unasked.ts";
import type { GroupEvent } from "../../../group/group-event.ts";
import type { GroupRun } from "../../../group/group-run.ts";
import type { GroupSession } from "../../../group/group-session.ts";
import type { SessionManager } from "../../../lifecycle/session-manager.ts";
import type { Content } from "../../../session/message.ts";
import type { Session } from "../../../session/session.ts";
import type { RunRequest } from "../../wire.ts";
import type { Caller } from "../server-services.ts";
import type { StartedRun } from "./hosted-run.ts";
import { RUN_KEY } from "./run-origin.ts";

/** How a run is started. */
export interface StartOptions {
  readonly manager: SessionManager;
  readonly sessionId: string;
  readonly actor: Caller;
  readonly ifBusy: NonNullable<RunRequest["ifBusy"]>;
  /** Which calls run without a person's word; an agent's own word may be stricter. */
  readonly unasked: Unasked | undefined;
}

/** How a run of an agent is started. */
export interface AgentStart extends StartOptions {
  readonly model: Model | null;
  /** Who is asked, and where the tools act. */
  readonly place: (input: Session) => Session;
}

/**
 * Starts a run of an agent on a stored session; with `reject`, resolves when it has the session. Rejects with how the run
 * failed before that.
 */
export async function startAgentRun(agent: Agent, input: Content, start: AgentStart): Promise<StartedRun> {
  const { manager, sessionId, model, actor, ifBusy, unasked } = start;
  const begun: Session[] = [];
  const place = (said: Session): Session => {
    const placed = start.place(said);
    begun.push(placed);
    return placed;
  };
  const run = manager.run(sessionId, agent, input, {
    actor,
    ifBusy,
    place,
    ...(model === null ? {} : { model }),
    ...(unasked && { unasked }),
  });
  if (ifBusy === "reject") await run.admitted;
  return startedAgentRun(run, begun);
}

/** A run of an agent as the server has it, and what it began with. */
export function startedAgentRun(run: SessionRun, begun: readonly Session[]): StartedRun {
  // Nobody else gets what the run came to. One that failed keeps its workspace, for whoever goes on with it.
  const letGo = async (output: Session): Promise<void> => {
    await Promise.allSettled([output, ...begun].map((session) => session.closeSandbox()));
  };
  run.synchronize().then(letGo, () => {});
  const admitted = run.admitted.catch(() => new Promise<void>(() => {}));
  return {
    ...startedOf(run, run.runId, admitted),
    steer: (content) => run.steer(content),
    followUp: (content) => run.followUp(content),
  };
}

/** Starts a run of a group, or goes on with what it was given before where there is no message; likewise. */
export async function startGroupRun(
  group: GroupSession,
  message: Content | null,
  { sessionId, actor, ifBusy, unasked, name }: StartOptions & { readonly name: string },
): Promise<StartedRun> {
  const admitted = signalOf<void>();
  const run = group.stream(sessionId, message, {
    actor,
    // Whoever is to make room has been asked to already; the rest is waiting.
    ifBusy: ifBusy === "reject" ? "reject" : "enqueue",
    turns: false,
    ...(unasked && { unasked }),
    ...(message === null ? {} : { metadata: { [RUN_KEY]: { group: name } } }),
    onEvent: ({ type }: GroupEvent) => type === "group-started" && admitted.give(),
  });
  const failed = Promise.resolve(run).then(() => {});
  if (ifBusy === "reject") await Promise.race([admitted.given, failed]);
  else failed.catch(() => {});
  return { ...startedOf(run, run.id, admitted.given), steer: null, followUp: null };
}

function startedOf(
  run: SessionRun | GroupRun,
  runId: string,
  admitted: Promise<void>,
): Omit<StartedRun, "steer" | "followUp"> {
  return {
    runId,
    drainId: run.id,
    events: run,
    admitted,
    abort: (reason) => run.abort(reason),
    approve: (callId) => run.approve(callId),
    deny: (callId, reason) => run.deny(callId, reason),
  };
}

function signalOf<T>(): { readonly given: Promise<T>; readonly give: (value: T) => void } {
  let give: (value: T) => void = () => {};
  const given = new Promise<T>((resolve) => {
    give = resolve;
  });
  return { given, give };
}
