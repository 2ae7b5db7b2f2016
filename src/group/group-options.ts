import { checkDeadline, checkLeaseMs, checkOnApproval } from "../agent/check-options.ts";
import type { LoopOptions } from "../agent/loop-options.ts";
import { checkAskPolicy, type AskPolicy } from "../agent/tools/ask-policy.ts";
import { defined } from "../internal/defined.ts";
import type { JsonObject } from "../internal/json.ts";
import { type ActorOptions, viewerOf } from "../lifecycle/access.ts";
import { SessionError, show } from "../session/errors.ts";
import { checkName } from "../session/id.ts";
import { inputIdOf } from "../session/log/open-runs.ts";
import type { Session } from "../session/value/session.ts";
import type { GroupEvent } from "./group-event.ts";
import { checkRounds } from "./turns/turn-roster.ts";

const WAIT_MS_DEFAULT = 60_000;
/** The longest time that a timer can wait. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** How a group is run. */
export interface GroupRunOptions extends ActorOptions, Pick<LoopOptions, "onApproval"> {
  /** How many rounds there are at most (default 10): as the turn manager counts them, and never more goes than so many for each agent. */
  readonly maxRounds?: number;
  readonly signal?: AbortSignal;
  /** Told of everything as it happens. One that throws is reported, and the group goes on. */
  readonly onEvent?: (event: GroupEvent) => void;
  /** Which calls of the agents run without a person's word; an agent's own word may be stricter. */
  readonly ask?: AskPolicy;
  /**
   * A group does not park. False: its questions wait for ever. Left out, a call that nobody has answered is denied after 30
   * seconds, or at once if nobody has subscribed to the events of the group; with `onApproval` that is asked.
   */
  readonly park?: false;
  /** How long an agent may take (default: as long as it likes). One that takes longer has failed. */
  readonly agentTimeoutMs?: number;
  /** What to do while another run has the session: fail with `SESSION_BUSY` (default), or wait for its end. */
  readonly ifBusy?: "reject" | "enqueue";
  /** How long to wait for the session at most (default 60,000). */
  readonly waitMs?: number;
  /** How long the session stays another's when this process dies or freezes (default 30,000 ms, at least 1,000). */
  readonly leaseMs?: number;
  /** When the run is stopped at the latest with `DEADLINE`, as an ISO time. */
  readonly deadline?: string;
  /**
   * The id that the log has the run under (default: a new one). With null for a message, the run of that id begins that was
   * asked for, or goes on.
   */
  readonly runId?: string;
  /** The id of the message's turn. A run that is repeated with it goes on where the first one stopped. */
  readonly turnId?: string;
  /** Goes with the message; `visibleTo` and `hiddenFrom` rule which agents see it. */
  readonly metadata?: JsonObject;
  /** False leaves the turns out of the state that comes back. */
  readonly turns?: boolean;
  /** Gives the session whose sandbox the agents share another place. */
  readonly place?: (session: Session) => Session;
}

/** The options of a run, checked. */
export interface CheckedGroupOptions {
  /** Null where none was given. */
  readonly maxRounds: number | null;
  readonly signal: AbortSignal | null;
  readonly onEvent: ((event: GroupEvent) => void) | undefined;
  readonly agentTimeoutMs: number | null;
  readonly ask: AskPolicy | undefined;
  /** How the agents wait for answers, where that is not theirs to say. */
  readonly waiting: Pick<LoopOptions, "onApproval" | "park">;
  readonly waitMs: number;
  readonly leaseMs?: number;
  readonly deadline?: string;
  readonly runId?: string;
  readonly turnId?: string;
  readonly metadata?: JsonObject;
  readonly turns: boolean;
  readonly place?: (session: Session) => Session;
  /** On whose behalf, as the manager takes it. */
  readonly actor: ActorOptions;
}

/** @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` for a set-up that cannot work. */
export function checkGroupOptions(options: GroupRunOptions): CheckedGroupOptions {
  viewerOf(options);
  const { maxRounds, signal, onEvent, agentTimeoutMs, ifBusy = "reject", waitMs = WAIT_MS_DEFAULT } = options;
  const { leaseMs, deadline, runId, metadata, place, turns = true } = options;
  const { turnId = runId === undefined ? undefined : inputIdOf(runId) } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid("signal is not an AbortSignal.");
  if (onEvent !== undefined && typeof onEvent !== "function") throw invalid("onEvent is not a function.");
  if (ifBusy !== "reject" && ifBusy !== "enqueue") {
    throw invalid(`ifBusy is ${show(ifBusy)}; a group takes "reject" or "enqueue".`);
  }
  if (runId !== undefined) checkName(runId, "a run");
  if (turnId !== undefined) checkName(turnId, "a turn");
  checkAskPolicy(options.ask);
  checkOnApproval(options.onApproval);
  if (options.park !== undefined && options.park !== false) {
    throw invalid(`park is ${show(options.park)}; a group takes false, since it does not park.`);
  }
  checkTime("waitMs", waitMs, 0);
  if (agentTimeoutMs !== undefined) checkTime("agentTimeoutMs", agentTimeoutMs, 1);
  checkLeaseMs(leaseMs);
  checkDeadline(deadline);
  return {
    maxRounds: maxRounds === undefined ? null : checkRounds(maxRounds),
    signal: signal ?? null,
    onEvent,
    agentTimeoutMs: agentTimeoutMs ?? null,
    ask: options.ask,
    waiting: defined({ onApproval: options.onApproval, park: options.park }),
    waitMs: ifBusy === "reject" ? 0 : waitMs,
    ...(leaseMs === undefined ? {} : { leaseMs }),
    ...(place === undefined ? {} : { place }),
    ...(deadline === undefined ? {} : { deadline }),
    ...(runId === undefined ? {} : { runId }),
    ...(turnId === undefined ? {} : { turnId }),
    ...(metadata === undefined ? {} : { metadata }),
    turns,
    actor: "actor" in options ? { actor: options.actor as NonNullable<ActorOptions["actor"]> } : {},
  };
}

function checkTime(name: string, ms: number, least: number): void {
  if (typeof ms === "number" && ms >= least && ms <= TIMER_MS_MAX) return;
  throw invalid(`${name} is ${show(ms)}; give a number from ${least} to ${TIMER_MS_MAX}.`);
}

function invalid(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}
