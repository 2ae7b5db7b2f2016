import { checkArgument, checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import type { UIMessageChunk } from "./ai-sdk.ts";
import type { RunEvent } from "../../agent/run-event.ts";
import type { Approval } from "../../session/log/run-event.ts";
import type { SessionRun } from "../../agent/session-run.ts";
import { AnswerWriter } from "./answer-writer.ts";
import { messageIdOfRun } from "../shown-turn.ts";
import { answerIdOf } from "./to-ui-messages.ts";

/** How a run is streamed. */
export interface UIMessageStreamOptions {
  /** The id of the message (default: that of the answer which the chat routes give the run). */
  readonly messageId?: string;
  /** The questions that were answered just now: what was told up to them is left out. */
  readonly after?: readonly string[];
}

/**
 * A run as the chunks of one message of the AI SDK, from its beginning. It ends with the run, and where the run waits for
 * approvals: a front end answers those with its next request. The run goes on when nobody reads any more.
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
  const { messageId = answerIdOf(messageIdOfRun(run.runId)), after = [] } = options;
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
        // Here nothing follows a run that parks; elsewhere it goes on in the same log.
        write([event], event.type === "run-parked" ? event.questions : []);
        // Calls that need no approval start right after the questions.
        timer = writer.ended ? undefined : setTimeout(() => write([], run.pendingApprovals));
      });
      if (writer.ended) stop();
    },
    cancel: leave,
  });
}
