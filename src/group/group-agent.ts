import type { Agent } from "../agent/agent.ts";
import type { JsonObject } from "../internal/json.ts";
import { invalidOption } from "../session/check-arguments.ts";
import { show } from "../session/errors.ts";
import { checkName } from "../session/id.ts";
import type { Content } from "../session/message.ts";
import type { SessionTurn } from "../session/state/state.ts";
import type { Usage } from "../session/usage.ts";
import type { Visibility } from "./group-drafts.ts";
import type { GroupMember } from "./turns/turn-manager.ts";

/** The context that an agent gets besides the messages. */
export interface GroupAgentContext {
  readonly sessionId: string;
  /** The role with which it joined the group. */
  readonly role: string;
  /** All members of the group, in the order in which they joined. */
  readonly agents: readonly GroupMember[];
  /** Aborts when the answer is no longer needed. */
  readonly signal: AbortSignal;
}

/** An agent's answer, with its usage and cost. Metadata may have `visibleTo` or `hiddenFrom`. */
export interface GroupReply {
  readonly content: Content | null;
  readonly usage?: Usage;
  /** In US dollars. */
  readonly cost?: number;
  readonly provider?: string;
  readonly model?: string;
  readonly metadata?: JsonObject;
}

/** The result of an agent: an answer, nothing, or a refusal with an error that does not stop the group. */
export type GroupAnswer = string | null | undefined | GroupReply | { readonly ok: false; readonly error: unknown };

/** An agent of any implementation. */
export interface ExecutingAgent {
  readonly name: string;
  /**
   * Answers the message. `message` is the text that the group was given, empty if this agent may not see it; `history`
   * has the turns that it may see, this one included, oldest first.
   */
  execute(
    message: string,
    history: readonly SessionTurn[],
    context: GroupAgentContext,
  ): GroupAnswer | Promise<GroupAnswer>;
}

/** A possible member of a group: an agent of `createAgent`, which must have a name, or any object with `execute`. */
export type GroupAgent = Agent | ExecutingAgent;

/** An agent as a member of a group. */
export interface GroupSeat extends GroupMember {
  readonly agent: GroupAgent;
  readonly visibility: Visibility;
}

/** Whether an agent has its own `execute`, instead of a model and a loop. */
export function isExecuting(agent: GroupAgent): agent is ExecutingAgent {
  return "execute" in agent && typeof agent.execute === "function";
}

/**
 * Makes an agent a member of a group. A limited visibility of its turns does not apply to the agent itself.
 *
 * @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` for a value that cannot be a member.
 */
export function seatOf(agent: GroupAgent, role: string, visibility: Visibility): GroupSeat {
  if (typeof agent !== "object" || agent === null) throw invalidOption("An agent of a group is an object with a name.");
  const runs = "run" in agent && typeof agent.run === "function";
  if (!isExecuting(agent) && !runs) {
    throw invalidOption(
      `The agent ${show(agent.name)} has neither an execute nor a run function; make one with createAgent.`,
    );
  }
  const { name } = agent;
  if (name === null || name === undefined) throw invalidOption("An agent needs a name to take part in a group.");
  checkName(name, "an agent");
  if (typeof role !== "string" || role === "")
    throw invalidOption(`The role of ${show(name)} is not a text, or empty.`);
  return { name, role, agent, visibility: checkVisibility(name, visibility) };
}

function checkVisibility(name: string, { visibleTo, hiddenFrom }: Visibility): Visibility {
  for (const names of [visibleTo, hiddenFrom]) {
    if (names === undefined || (Array.isArray(names) && names.every((each) => typeof each === "string"))) continue;
    throw invalidOption(`visibleTo or hiddenFrom of the agent ${show(name)} is not a list of names.`);
  }
  return {
    ...(visibleTo === undefined ? {} : { visibleTo: [...new Set([...visibleTo, name])] }),
    ...(hiddenFrom === undefined ? {} : { hiddenFrom: hiddenFrom.filter((each) => each !== name) }),
  };
}
