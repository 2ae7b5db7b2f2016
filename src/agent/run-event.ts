import type { JsonValue } from "../internal/json.ts";
import type { RecordedRunEvent, RunError } from "../session/log/run-event.ts";
import type { BudgetLevel } from "../session/payer.ts";
import type { Usage } from "../session/usage.ts";
import type { ModelDelta } from "./model/model.ts";

/**
 * An event of a run. `round` counts the answers of the model from 1 over all claims of the run; `runId` is the run's id
 * in the log. Events are plain data that survives a round trip through JSON. The first is `run-started`: the run holds
 * its session.
 *
 * The events of `RecordedRunEvent` come in the order of the log: in each round `round-finished` as soon as the answer
 * is recorded, then `approval-required`, and `tool-finished` in the order of the calls. The others are emitted live in
 * between.
 */
export type RunEvent =
  | (RecordedRunEvent & { readonly claim?: number })
  | ({ readonly runId: string } & (
      | { readonly type: "round-started"; readonly round: number }
      | { readonly type: "text-delta" | "thinking-delta"; readonly round: number; readonly text: string }
      | (Extract<ModelDelta, { type: "tool-call-delta" }> & { readonly round: number })
      /** The model failed temporarily; discard its text of this round so far. */
      | {
          readonly type: "model-retry";
          readonly round: number;
          readonly attempt: number;
          readonly delayMs: number;
          readonly error: RunError;
        }
      | { readonly type: "usage"; readonly round: number; readonly usage: Usage; readonly cost?: number }
      /** The arguments as the tool gets them, if they are JSON; otherwise as the model wrote them. */
      | {
          readonly type: "tool-started";
          readonly round: number;
          readonly callId: string;
          readonly name: string;
          readonly arguments: JsonValue;
        }
      /**
       * A question of a run inside a tool was answered or withdrawn. For the run's own calls, `tool-started` and
       * `tool-finished` report that.
       */
      | {
          readonly type: "approval-settled";
          readonly round: number;
          readonly callId: string;
          readonly question: string;
        }
      /**
       * Someone moved the session's leaf to another branch: the run continues on its own branch, off the active path.
       * Emitted once.
       */
      | { readonly type: "leaf-moved"; readonly leafId: string | null }
      /**
       * A budget of the user is used up as far as its `warnAt`, emitted once for each limit; or, with `exceeded`, its limit is
       * reached and ends the run.
       */
      | ({ readonly type: "budget-warning"; readonly exceeded: boolean } & Omit<BudgetLevel, "warnAt">)
      /** The reader was too slow, or came too late, for this many events; it continues after them. */
      | { readonly type: "events-dropped"; readonly count: number }
    ));
