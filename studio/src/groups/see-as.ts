// These are the rules that a group itself goes by; they are pure, and another copy of them would come to differ.
import { rowsFor, visibleTo } from "../../../src/group/agent-view.ts";
import type { GroupItem } from "../../../src/group/group-log.ts";
import { RoleIsolation } from "../../../src/group/role-isolation.ts";
import { compactionMessage, contextPath, messagesOf } from "../../../src/session/context.ts";
import type { Entry } from "../../../src/session/entry.ts";
import type { Message } from "../../../src/session/message.ts";
import { turnOf } from "../../../src/session/state.ts";

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
  const { compaction, entries } = contextPath(path, new Set(undone));
  const items = entries.flatMap((entry) => messagesOf(entry).map((message) => itemOf(entry, message)));
  if (compaction !== null) items.unshift(itemOf(compaction, compactionMessage(compaction.summary)));
  const seen = visibleTo(agent, items, new RoleIsolation(), { filterVisible: (turns) => turns });
  const rows = rowsFor(agent, seen);
  const told = rows.map(({ id, message }) => ({ entryId: id ?? null, message }));
  return { told, hidden: items.length - told.filter(({ entryId }) => entryId !== null).length };
}

/** A turn, or what stands for one: its details rule who sees it, as a turn's metadata does. */
function itemOf(entry: Entry, message: Message): GroupItem {
  if (entry.type === "message") return { turn: turnOf(entry), message };
  const details = "details" in entry ? entry.details : undefined;
  const metadata = typeof details === "object" && details !== null && !Array.isArray(details) ? details : {};
  const { id: turnId, timestamp } = entry;
  const turn = { turnId, role: message.role, content: message.content, timestamp, metadata, tokensUsed: 0, cost: 0 };
  return { turn: turn as GroupItem["turn"], message };
}
