import type { ReactNode } from "react";
import type { ToolCall, ToolMessage } from "../../../../src/session/message.ts";
import { LiveToolCall } from "../../run/live-tool-call.tsx";
import { ToolCallFold } from "./tool-call-fold.tsx";

/** A tool call with what came of it; one without a result is looked up in the run that goes on. */
export function ToolCallView({
  call,
  result,
  answer,
}: {
  readonly call: ToolCall;
  readonly result: ToolMessage | null;
  /** Who let it run or did not. */
  readonly answer?: ReactNode;
}): ReactNode {
  if (result === null) return <LiveToolCall call={call} />;
  return <ToolCallFold call={call} result={result} state={null} answer={answer} />;
}
