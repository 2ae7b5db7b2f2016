import type { SessionManager } from "../lifecycle/session-manager.ts";
import { checkKeys, invalidOption, type KeysOf } from "../session/check-arguments.ts";
import { SessionCapacityError, show } from "../session/errors.ts";
import type { Content } from "../session/message.ts";
import type { SessionState } from "../session/state/state.ts";
import type { TurnFilter } from "./agent-view.ts";
import { type GroupAgent, type GroupSeat, seatOf } from "./group-agent.ts";
import type { Visibility } from "./group-drafts.ts";
import { checkGroupOptions, type GroupRunOptions } from "./group-options.ts";
import type { GroupRun } from "./group-run.ts";
import { RoleIsolation } from "./role-isolation.ts";
import { RunningGroup } from "./running-group.ts";
import { PriorityTurnManager } from "./turns/priority-turn-manager.ts";
import { RoundRobinTurnManager } from "./turns/round-robin-turn-manager.ts";
import type { GroupMember, TurnManager } from "./turns/turn-manager.ts";

/** The options of a group. */
export interface GroupSessionInit {
  readonly manager: SessionManager;
  /** Decides who speaks next (default: as the manager's config says, which is round robin unless set otherwise). */
  readonly turnManager?: TurnManager;
  /** Decides who sees which turns (default: by each turn's metadata). */
  readonly roleIsolation?: TurnFilter;
  /** The most agents (default: the config's `maxAgentsPerGroup`). */
  readonly maxAgents?: number;
}

const INIT_KEYS: KeysOf<GroupSessionInit> = { manager: true, turnManager: true, roleIsolation: true, maxAgents: true };

/**
 * Several agents that take turns in one session.
 *
 * - The whole state is in the log: who took a turn, who passed, how it ended. Another instance on the same store, in
 *   any process, can continue where this one stopped.
 * - An agent sees only the turns that both the role isolation and the turn manager allow.
 * - Only one group at a time runs in a session; messages that users add in the meantime are kept and seen.
 * - A run reads the context once, and after that only new entries.
 */
export class GroupSession {
  readonly #manager: SessionManager;
  readonly #turnManager: TurnManager;
  readonly #isolation: TurnFilter;
  readonly #maxAgents: number;
  readonly #seats = new Map<string, GroupSeat>();

  constructor(init: GroupSessionInit) {
    const { manager, turnManager, roleIsolation = new RoleIsolation(), maxAgents } = init ?? {};
    if (typeof manager?.open !== "function") throw invalidOption("A group needs a session manager.");
    checkKeys(init, INIT_KEYS, "A group");
    if (typeof roleIsolation?.filterForAgent !== "function")
      throw invalidOption("roleIsolation has no filterForAgent.");
    this.#manager = manager;
    this.#turnManager = checkTurnManager(turnManager ?? turnManagerBy(manager.config.defaultTurnStrategy));
    this.#isolation = roleIsolation;
    this.#maxAgents = maxAgents ?? manager.config.maxAgentsPerGroup;
    if (!Number.isSafeInteger(this.#maxAgents) || this.#maxAgents < 1) {
      throw invalidOption(`maxAgents is ${show(maxAgents)}; give a whole number of 1 or more.`);
    }
  }

  /** The names of the agents, in the order in which they joined. */
  get agentNames(): string[] {
    return [...this.#seats.keys()];
  }

  /** The agents with their roles, in the order in which they joined. */
  get members(): GroupMember[] {
    return [...this.#seats.values()].map(({ name, role }) => ({ name, role }));
  }

  /**
   * Adds an agent: one of `createAgent`, or any object with a name and an `execute` function. `visibility` limits who
   * sees its answers; the agent itself always does.
   *
   * @throws {SessionCapacityError} if the group is full.
   * @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` for an agent without a unique name.
   */
  addAgent(agent: GroupAgent, role = "participant", visibility: Visibility = {}): this {
    const seat = seatOf(agent, role, visibility);
    if (this.#seats.has(seat.name)) {
      throw invalidOption(
        `An agent named ${show(seat.name)} is in the group already; give each agent a name of its own.`,
      );
    }
    if (this.#seats.size >= this.#maxAgents) throw new SessionCapacityError("agents in a group", this.#maxAgents);
    this.#turnManager.register(seat.name, role);
    this.#seats.set(seat.name, seat);
    return this;
  }

  /** Gives the group a message and returns the state after its answer. */
  async run(sessionId: string, message: Content, options: GroupRunOptions = {}): Promise<SessionState> {
    return this.stream(sessionId, message, options);
  }

  /**
   * Continues answering the last message after a crash, an abort or the failure of an agent, which is asked again. Does
   * nothing if the group had finished.
   */
  async resume(sessionId: string, options: Omit<GroupRunOptions, "turnId" | "metadata"> = {}): Promise<SessionState> {
    return this.stream(sessionId, null, options);
  }

  /**
   * The same as `run` (or as `resume`, if the message is null), but returns a run with events.
   *
   * @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` synchronously; other errors reject the run.
   */
  stream(sessionId: string, message: Content | null, options: GroupRunOptions = {}): GroupRun {
    const checked = checkGroupOptions(options);
    if (message !== null && typeof message !== "string" && !Array.isArray(message)) {
      throw invalidOption(`The message for the group is ${show(message)}; give a text or content parts.`);
    }
    if (this.#seats.size === 0) throw invalidOption("The group has no agents; add one first.");
    const parts = { seats: this.#seats, turnManager: this.#turnManager, isolation: this.#isolation };
    return new RunningGroup({ manager: this.#manager, parts, sessionId, message, options: checked });
  }
}

function turnManagerBy(strategy: string): TurnManager {
  if (strategy === "priority") return new PriorityTurnManager();
  if (strategy === "round_robin") return new RoundRobinTurnManager();
  throw invalidOption(`The turn strategy ${show(strategy)} needs to know the topics; give a turnManager.`);
}

function checkTurnManager(turnManager: TurnManager): TurnManager {
  for (const method of ["register", "selectNext", "isComplete", "filterVisible"] as const) {
    if (typeof turnManager?.[method] !== "function") throw invalidOption(`The turn manager has no ${method} function.`);
  }
  return turnManager;
}
