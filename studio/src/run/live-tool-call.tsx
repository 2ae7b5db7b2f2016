import type { ReactNode } from "react";
import type { ToolCall } from "../../../src/session/message.ts";
import { ToolCallFold } from "../transcript/tool-call-fold.tsx";
import { ApprovalCard } from "./approval-card.tsx";
import { useRunCalls } from "./run-context.ts";

/** A call that the log has no result of: how the run that goes on says it stands. */
export function LiveToolCall({ call }: { readonly call: ToolCall }): ReactNode {
  const calls = useRunCalls();
  const tool = calls?.tools[call.id] ?? null;
  if (tool?.state === "done") return <ToolCallFold call={call} result={tool.message} state={null} />;
  const state = tool?.state ?? (calls?.running === true ? "next" : "called");
  return (
    <ToolCallFold call={call} result={null} state={state}>
      {calls !== null && tool?.state === "waiting" && <ApprovalCard approval={tool.approval} calls={calls} />}
    </ToolCallFold>
  );
}
