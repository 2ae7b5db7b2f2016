export type { TurnFilter } from "./agent-view.ts";
export type {
  ExecutingAgent,
  GroupAgent,
  GroupAgentContext,
  GroupAnswer,
  GroupReply,
} from "./group-agent.ts";
export type { Visibility } from "./group-drafts.ts";
export type { GroupEvent, GroupOutcome } from "./group-event.ts";
export type { GroupRunOptions } from "./group-options.ts";
export type { GroupEnd } from "./group-progress.ts";
export type { GroupRun } from "./group-run.ts";
export { GroupSession, type GroupSessionInit } from "./group-session.ts";
export { LlmTurnManager, type LlmTurnManagerOptions } from "./turns/llm-turn-manager.ts";
export { PriorityTurnManager } from "./turns/priority-turn-manager.ts";
export { RoleIsolation } from "./role-isolation.ts";
export { RoundRobinTurnManager } from "./turns/round-robin-turn-manager.ts";
export { TopicBasedTurnManager, type TopicOptions, type Topics } from "./turns/topic-based-turn-manager.ts";
export type { GroupMember, GroupView, TurnManager } from "./turns/turn-manager.ts";
