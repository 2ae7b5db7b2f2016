import type { RunEvent } from "../agent/run-event.ts";
import type { RecordedGroupEvent } from "../session/log/run-event.ts";

/**
 * An event of a group. Events of an agent's own run have the agent's name; `runId` is always the group's. Events are
 * plain data that survives a round trip through JSON.
 */
export type GroupEvent =
  | (RecordedGroupEvent & { readonly claim?: number })
  | (RunEvent & { readonly agent: string })
  | ({ readonly runId: string } /** `move` counts the turns of agents since the message, from 1. */ & (
      | { readonly type: "agent-selected"; readonly agent: string; readonly move: number }
      /** The reader was too slow, or came too late, for this many events; it continues after them. */
      | { readonly type: "events-dropped"; readonly count: number }
    ));
