import type { RunError } from "../agent/run-error.ts";
import type { RunEvent } from "../agent/run-event.ts";
import type { GroupEnd } from "./group-progress.ts";

/** How a group came to its end. */
export type GroupOutcome =
  | { readonly reason: GroupEnd }
  | { readonly reason: "agent-failed"; readonly agent: string; readonly error: RunError };

/**
 * What happens in a group, as it happens. What happens in an agent's own run comes with the agent's name; `runId` is the
 * group's throughout. All of it is plain data, which JSON carries without loss.
 */
export type GroupEvent = { readonly runId: string } & (
  | {
      readonly type: "group-started";
      readonly sessionId: string;
      /** The entry of the message that the group answers. */
      readonly messageId: string;
      readonly agents: readonly string[];
      /** Whether it goes on where an earlier run of the group stopped. */
      readonly resumed: boolean;
    }
  /** `move` counts the goes of agents since the message, from 1. */
  | { readonly type: "agent-selected"; readonly agent: string; readonly move: number }
  | (RunEvent & { readonly agent: string })
  | {
      readonly type: "agent-finished";
      readonly agent: string;
      readonly kind: "spoke" | "passed" | "refused";
      /** The entry of its answer; null where it gave none. */
      readonly turnId: string | null;
      readonly text: string;
      /** Why it refused. */
      readonly error?: RunError;
    }
  | { readonly type: "agent-failed"; readonly agent: string; readonly error: RunError }
  | { readonly type: "group-finished"; readonly outcome: GroupOutcome }
  /** The run of the group was stopped, or cannot go on; what was said stays. */
  | { readonly type: "group-failed"; readonly error: RunError }
  /** The reader was too slow, or came too late, for this many events, and goes on after them. */
  | { readonly type: "events-dropped"; readonly count: number }
);
