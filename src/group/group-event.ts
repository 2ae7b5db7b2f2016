import type { RunEvent } from "../agent/run-event.ts";
import type { RecordedGroupEvent } from "../session/log/run-event.ts";

/**
 * What happens in a group, as it happens. What happens in an agent's own run comes with the agent's name; `runId` is the
 * group's throughout. All of it is plain data, which JSON carries without loss.
 */
export type GroupEvent =
  | (RecordedGroupEvent & { readonly claim?: number })
  | (RunEvent & { readonly agent: string })
  | ({ readonly runId: string } /** `move` counts the turns of agents since the message, from 1. */ & (
      | { readonly type: "agent-selected"; readonly agent: string; readonly move: number }
      /** The reader was too slow, or came too late, for this many events, and goes on after them. */
      | { readonly type: "events-dropped"; readonly count: number }
    ));
