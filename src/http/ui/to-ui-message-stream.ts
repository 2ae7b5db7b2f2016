import type { RunEvent } from "../../agent/run-event.ts";
import type { SessionRun } from "../../agent/session-run.ts";
import { checkArgument, checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import type { Approval } from "../../session/log/run-event.ts";
import { messageIdOfRun } from "../shown-turn.ts";
import type { UIMessageChunk } from "./ai-sdk.ts";
import { AnswerWriter } from "./answer-writer.ts";
import { answerMessageIdOf } from "./to-ui-messages.ts";

/** Options for streaming a run. */
export interface UIMessageStreamOptions {
  /** The id of the message (default: the id that the chat routes use for the run's answer). */
  readonly messageId?: string;
  /** The questions that were just answered: events up to them are left out. */
  readonly after?: readonly string[];
}

/**
 * A run as the chunks of one AI SDK message, from its beginning. The stream ends with the run, or when the run waits
 * for approvals, which the front end answers with its next request. The run continues without a reader.
 */
export function toUIMessageStream(
  run: Pick<SessionRun, "runId" | "listen" | "pendingApprovals">,
  options: UIMessageStreamOptions = {},
): ReadableStream<UIMessageChunk> {
  checkArgument(typeof run?.listen === "function", run, "toUIMessageStream", "a run");
  checkOptionsOf(
    options,
    { messageId: true, after: true } satisfies KeysOf<UIMessageStreamOptions>,
    "toUIMessageStream",
  );
  const { messageId = answerMessageIdOf(messageIdOfRun(run.runId)), after = [] } = options;
  const writer = new AnswerWriter(messageId, after);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stop = (): void => {};
  const leave = (): void => {
    clearTimeout(timer);
    stop();
  };
  return new ReadableStream<UIMessageChunk>({
    start(controller) {
      const write = (events: readonly RunEvent[], waiting: readonly Approval[]): void => {
        if (writer.ended) return;
        for (const chunk of writer.take(events, waiting)) controller.enqueue(chunk);
        if (!writer.ended) return;
        leave();
        controller.close();
      };
      stop = run.listen((event) => {
        clearTimeout(timer);
        // This stream ends when the run parks; the chat routes continue with the same log.
        write([event], event.type === "run-parked" ? event.questions : []);
        // Calls that need no approval start directly after the questions.
        timer = writer.ended ? undefined : setTimeout(() => write([], run.pendingApprovals));
      });
      if (writer.ended) stop();
    },
    cancel: leave,
  });
}
