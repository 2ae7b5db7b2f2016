// These are the rules that a group itself goes by; they are pure, and another copy of them would come to differ.
import { contextItems, rowsFor, visibleTo } from "../../../src/group/agent-view.ts";
import { RoleIsolation } from "../../../src/group/role-isolation.ts";
import { contextPath } from "../../../src/session/context/context.ts";
import type { Entry } from "../../../src/session/log/entry.ts";
import type { Message } from "../../../src/session/message.ts";

/** One message as an agent is told of it. */
export interface ToldMessage {
  /** The entry it comes from; null for what only the agent is told. */
  readonly entryId: string | null;
  readonly message: Message;
}

/** What an agent would be told if it were its turn now. */
export interface AgentSight {
  readonly told: readonly ToldMessage[];
  /** How many turns of the context it is not told of. */
  readonly hidden: number;
}

/** What an agent of a group may see of a path, and how it is told. */
export function seeAs(agent: string, path: readonly Entry[], undone: readonly string[]): AgentSight {
  const items = contextItems(contextPath(path, new Set(undone)));
  const seen = visibleTo(agent, items, new RoleIsolation(), { filterVisible: (turns) => turns });
  const rows = rowsFor(agent, seen);
  const told = rows.map(({ id, message }) => ({ entryId: id ?? null, message }));
  return { told, hidden: items.length - told.filter(({ entryId }) => entryId !== null).length };
}
