// Uses the visibility rules of the server's groups themselves, which are pure functions: a copy would diverge.
import { contextItems, rowsFor, visibleTo } from "../../../src/group/agent-view.ts";
import { RoleIsolation } from "../../../src/group/role-isolation.ts";
import { contextPath } from "../../../src/session/context/context.ts";
import type { Entry } from "../../../src/session/log/entry.ts";
import type { Message } from "../../../src/session/message.ts";

/** A message as an agent sees it. */
export interface ToldMessage {
  /** The entry it comes from; null for a message that is generated for the agent. */
  readonly entryId: string | null;
  readonly message: Message;
}

/** The messages that an agent would see if it had the next turn. */
export interface AgentSight {
  readonly told: readonly ToldMessage[];
  /** The number of turns of the context that are hidden from it. */
  readonly hidden: number;
}

/** The messages of a path that an agent of a group may see, in the form it gets them. */
export function seeAs(agent: string, path: readonly Entry[], undone: readonly string[]): AgentSight {
  const items = contextItems(contextPath(path, new Set(undone)));
  const seen = visibleTo(agent, items, new RoleIsolation(), { filterVisible: (turns) => turns });
  const rows = rowsFor(agent, seen);
  const told = rows.map(({ id, message }) => ({ entryId: id ?? null, message }));
  return { told, hidden: items.length - told.filter(({ entryId }) => entryId !== null).length };
}
