import type { ReactNode } from "react";
import type { ToolCall, ToolMessage } from "../../../src/session/message.ts";
import { LiveToolCall } from "../run/live-tool-call.tsx";
import { ToolCallFold } from "./tool-call-fold.tsx";

/** A tool call with what came of it; one without a result is looked up in the run that goes on. */
export function ToolCallView({
  call,
  result,
}: {
  readonly call: ToolCall;
  readonly result: ToolMessage | null;
}): ReactNode {
  return result === null ? <LiveToolCall call={call} /> : <ToolCallFold call={call} result={result} state={null} />;
}
