import { checkDeadline, checkLeaseMs, checkOnApproval } from "../agent/check-options.ts";
import type { LoopOptions } from "../agent/loop-options.ts";
import { type AskPolicy, checkAskPolicy } from "../agent/tools/ask-policy.ts";
import { defined } from "../internal/defined.ts";
import type { JsonObject } from "../internal/json.ts";
import { type ActorOptions, viewerOf } from "../lifecycle/access.ts";
import { checkOptionsOf, invalidOption, type KeysOf } from "../session/check-arguments.ts";
import { show } from "../session/errors.ts";
import { checkName } from "../session/id.ts";
import { inputIdOf } from "../session/log/open-runs.ts";
import type { Session } from "../session/value/session.ts";
import type { GroupEvent } from "./group-event.ts";
import { checkRounds } from "./turns/turn-roster.ts";

const WAIT_MS_DEFAULT = 60_000;
/** The longest delay of a timer. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Options of a group's run. */
export interface GroupRunOptions extends ActorOptions, Pick<LoopOptions, "onApproval"> {
  /**
   * The most rounds (default 10), as the turn manager counts them; in any case at most this number of turns for each
   * agent.
   */
  readonly maxRounds?: number;
  readonly signal?: AbortSignal;
  /** Called with every event. An error that it throws is reported, and the group continues. */
  readonly onEvent?: (event: GroupEvent) => void;
  /** Which calls of the agents need approval; an agent's own policy may be stricter. */
  readonly ask?: AskPolicy;
  /**
   * A group does not park. False: its questions wait without limit. By default, an unanswered call is denied after 30
   * seconds, or immediately if no one has subscribed to the events of the group; with `onApproval`, that function is
   * asked.
   */
  readonly park?: false;
  /** How long an agent may take (default: no limit). After that it counts as failed. */
  readonly agentTimeoutMs?: number;
  /** What to do while another run holds the session: fail with `SESSION_BUSY` (default), or wait for its end. */
  readonly ifBusy?: "reject" | "enqueue";
  /** The longest time to wait for the session (default 60,000). */
  readonly waitMs?: number;
  /**
   * How long other processes must wait for the session if this process dies or freezes (default 30,000 ms, at least
   * 1,000).
   */
  readonly leaseMs?: number;
  /** The time at which the run is stopped with `DEADLINE`, as an ISO time. */
  readonly deadline?: string;
  /**
   * The run's id in the log (default: a new one). If the message is null, the requested run with this id starts, or an
   * existing one continues.
   */
  readonly runId?: string;
  /** The id of the message's turn. A repeated run with the same id continues where the first one stopped. */
  readonly turnId?: string;
  /** Stored with the message; `visibleTo` and `hiddenFrom` determine which agents see it. */
  readonly metadata?: JsonObject;
  /** False leaves the turns out of the returned state. */
  readonly turns?: boolean;
  /** Sets the sandbox placement of the session that the agents share. */
  readonly place?: (session: Session) => Session;
}

const KEYS: KeysOf<GroupRunOptions> = {
  actor: true,
  onApproval: true,
  maxRounds: true,
  signal: true,
  onEvent: true,
  ask: true,
  park: true,
  agentTimeoutMs: true,
  ifBusy: true,
  waitMs: true,
  leaseMs: true,
  deadline: true,
  runId: true,
  turnId: true,
  metadata: true,
  turns: true,
  place: true,
};

/** The checked options of a run. */
export interface CheckedGroupOptions {
  /** Null if none was given. */
  readonly maxRounds: number | null;
  readonly signal: AbortSignal | null;
  readonly onEvent: ((event: GroupEvent) => void) | undefined;
  readonly agentTimeoutMs: number | null;
  readonly ask: AskPolicy | undefined;
  /** How the agents wait for answers, unless they have their own options. */
  readonly waiting: Pick<LoopOptions, "onApproval" | "park">;
  readonly waitMs: number;
  readonly leaseMs?: number;
  readonly deadline?: string;
  readonly runId?: string;
  readonly turnId?: string;
  readonly metadata?: JsonObject;
  readonly turns: boolean;
  readonly place?: (session: Session) => Session;
  /** The acting user, in the form that the manager accepts. */
  readonly actor: ActorOptions;
}

/** @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` for invalid options. */
export function checkGroupOptions(options: GroupRunOptions): CheckedGroupOptions {
  checkOptionsOf(options, KEYS, "A run of a group");
  viewerOf(options);
  const { maxRounds, signal, onEvent, agentTimeoutMs, ifBusy = "reject", waitMs = WAIT_MS_DEFAULT } = options;
  const { leaseMs, deadline, runId, metadata, place, turns = true } = options;
  const { turnId = runId === undefined ? undefined : inputIdOf(runId) } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalidOption("signal is not an AbortSignal.");
  if (onEvent !== undefined && typeof onEvent !== "function") throw invalidOption("onEvent is not a function.");
  if (ifBusy !== "reject" && ifBusy !== "enqueue") {
    throw invalidOption(`ifBusy is ${show(ifBusy)}; a group takes "reject" or "enqueue".`);
  }
  if (runId !== undefined) checkName(runId, "a run");
  if (turnId !== undefined) checkName(turnId, "a turn");
  checkAskPolicy(options.ask);
  checkOnApproval(options.onApproval);
  if (options.park !== undefined && options.park !== false) {
    throw invalidOption(`park is ${show(options.park)}; a group takes false, since it does not park.`);
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
  throw invalidOption(`${name} is ${show(ms)}; give a number from ${least} to ${TIMER_MS_MAX}.`);
}
