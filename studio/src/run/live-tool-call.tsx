import type { ReactNode } from "react";
import type { ToolCall } from "../../../src/session/message.ts";
import { useTalkActions } from "../transcript/talk-actions.ts";
import { type CallState, ToolCallFold } from "../transcript/content/tool-call-fold.tsx";
import { ApprovalCard } from "./approval-card.tsx";
import { type RunCalls, useRunCalls } from "./run-context.ts";

/** A call without a result in the log; shows its state in the open run. */
export function LiveToolCall({ call }: { readonly call: ToolCall }): ReactNode {
  const calls = useRunCalls();
  const sessionId = useTalkActions()?.sessionId;
  const tool = calls?.tools[call.id] ?? null;
  if (tool?.state === "done") return <ToolCallFold call={call} result={tool.message} state={null} />;
  const asked = calls?.questions.find(({ callId }) => callId === call.id);
  return (
    <ToolCallFold call={call} result={null} state={asked === undefined ? stateOf(calls, call.id) : "waiting"}>
      {asked !== undefined && sessionId !== undefined && (
        <ApprovalCard key={asked.question} sessionId={sessionId} asked={asked} />
      )}
    </ToolCallFold>
  );
}

function stateOf(calls: RunCalls | null, callId: string): CallState {
  if (calls === null) return "called";
  if (calls.tools[callId]?.state === "running") return "running";
  return calls.running ? "next" : "called";
}
