import type { UIMessageChunk } from "./ai-sdk.ts";
import type { SessionRun } from "../../agent/session-run.ts";
import { AnswerWriter } from "./answer-writer.ts";
import { answerIdOfRun } from "./message-id.ts";

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
  { messageId = answerIdOfRun(run.runId), after = [] }: UIMessageStreamOptions = {},
): ReadableStream<UIMessageChunk> {
  const writer = new AnswerWriter(messageId, after);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stop = (): void => {};
  const leave = (): void => {
    clearTimeout(timer);
    stop();
  };
  return new ReadableStream<UIMessageChunk>({
    start(controller) {
      const write = (chunks: readonly UIMessageChunk[]): void => {
        for (const chunk of chunks) controller.enqueue(chunk);
        if (!writer.ended) return;
        leave();
        controller.close();
      };
      write(writer.begin());
      stop = run.listen((event) => {
        if (writer.ended) return;
        clearTimeout(timer);
        // Here nothing follows a run that parks; elsewhere it goes on in the same log.
        write(event.type === "run-parked" ? writer.pause() : writer.take(event));
        if (writer.ended || !writer.waitsFor(run.pendingApprovals.map(({ callId }) => callId))) return;
        // Calls that need no approval start right after the questions.
        timer = setTimeout(() => write(writer.pause()));
      });
      if (writer.ended) stop();
    },
    cancel: leave,
  });
}
