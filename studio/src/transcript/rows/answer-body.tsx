import type { ReactNode } from "react";
import type { AssistantMessage, ToolMessage } from "../../../../src/session/message.ts";
import { ContentView } from "../content/content-view.tsx";
import { partsOf } from "../content/said.ts";
import { ToolCallView } from "../content/tool-call-view.tsx";

/** What a model said, and its calls with what came of them. */
export function AnswerBody({
  message,
  resultOf,
  answerOf,
}: {
  readonly message: AssistantMessage;
  readonly resultOf: (callId: string) => ToolMessage | null;
  /** Shows who was asked about a call, where that is on record. */
  readonly answerOf?: (callId: string) => ReactNode;
}): ReactNode {
  const { content, toolCalls = [], stopReason } = message;
  const isEmpty = toolCalls.length === 0 && partsOf(content).every((part) => part.type === "text" && part.text === "");
  return (
    <>
      <ContentView content={content} />
      {toolCalls.map((call) => (
        <ToolCallView key={call.id} call={call} result={resultOf(call.id)} answer={answerOf?.(call.id)} />
      ))}
      {isEmpty && stopReason !== "error" && <p className="soft">It said nothing.</p>}
      {stopReason === "error" && (
        <p className="transcript-error">{errorOf(message) ?? "The model failed before it was done."}</p>
      )}
    </>
  );
}

function errorOf({ metadata }: AssistantMessage): string | null {
  const error = metadata?.["error"];
  return typeof error === "string" ? error : null;
}
