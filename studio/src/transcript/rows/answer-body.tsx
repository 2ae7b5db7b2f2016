import type { ReactNode } from "react";
import type { AssistantMessage, ToolMessage } from "../../../../src/session/message.ts";
import { ContentView } from "../content/content-view.tsx";
import { partsOf } from "../content/content-text.ts";
import { ToolCallView } from "../content/tool-call-view.tsx";

/** The answer of a model, and its calls with their results. */
export function AnswerBody({
  message,
  resultOf,
  answerOf,
}: {
  readonly message: AssistantMessage;
  readonly resultOf: (callId: string) => ToolMessage | null;
  /** Renders who answered the question about a call, if one was asked. */
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
      {isEmpty && stopReason !== "error" && <p className="soft">The answer is empty.</p>}
      {stopReason === "error" && (
        <p className="transcript-error">{errorOf(message) ?? "The model failed before it finished."}</p>
      )}
    </>
  );
}

function errorOf({ metadata }: AssistantMessage): string | null {
  const error = metadata?.["error"];
  return typeof error === "string" ? error : null;
}
