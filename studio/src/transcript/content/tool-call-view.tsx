import type { ReactNode } from "react";
import type { ToolCall, ToolMessage } from "../../../../src/session/message.ts";
import { LiveToolCall } from "../../run/live-tool-call.tsx";
import { ToolCallFold } from "./tool-call-fold.tsx";

/** A tool call with its result; a call without one shows its state in the open run. */
export function ToolCallView({
  call,
  result,
  answer,
}: {
  readonly call: ToolCall;
  readonly result: ToolMessage | null;
  /** Who approved or denied it. */
  readonly answer?: ReactNode;
}): ReactNode {
  if (result === null) return <LiveToolCall call={call} />;
  return <ToolCallFold call={call} result={result} state={null} answer={answer} />;
}
