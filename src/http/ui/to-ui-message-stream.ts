import type { UIMessageChunk } from "./ai-sdk.ts";
import type { SessionRun } from "../../agent/session-run.ts";
import { AnswerWriter } from "./answer-writer.ts";
import { answerMessageIdOfRun } from "./message-id.ts";

/**
 * How long a run that waits for a person's word must be silent before its message ends: it may ask for several calls, one
 * after the other.
 */
export const QUIET_MS = 100;

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
  { messageId = answerMessageIdOfRun(run.runId), after = [] }: UIMessageStreamOptions = {},
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
        timer = setTimeout(() => write(writer.pause()), QUIET_MS);
      });
      if (writer.ended) stop();
    },
    cancel: leave,
  });
}
