import type { ReactNode } from "react";
import { ApprovalCard } from "./approval-card.tsx";
import { useRunCalls } from "./run-context.ts";

/** The questions of runs that tools have started: calls of theirs are in no turn of this session. */
export function InnerApprovals(): ReactNode {
  const calls = useRunCalls();
  if (calls === null) return null;
  const asked = Object.values(calls.tools).flatMap((tool) => (tool.state === "waiting" ? tool.approval : []));
  return asked
    .filter(({ innerRunId }) => innerRunId !== undefined)
    .map((approval) => <ApprovalCard key={approval.question} approval={approval} calls={calls} />);
}
