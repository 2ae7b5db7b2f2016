import type { ReactNode } from "react";
import type { AssistantMessage, StopReason } from "../../../../src/session/message.ts";
import { visibleText } from "../../markdown/visible-text.ts";
import { formatCost, formatTokens } from "../content/format.ts";

const STOPS: Readonly<Partial<Record<StopReason, string>>> = {
  length: "cut off: too long",
  content_filter: "refused",
  aborted: "stopped",
  error: "failed",
};

/** Which model answered, what that took, and why it stopped where it did not just finish. */
export function AnswerFacts({ message }: { readonly message: AssistantMessage }): ReactNode {
  const { provider, model, usage, cost, stopReason } = message;
  const stop = stopReason === undefined ? undefined : STOPS[stopReason];
  const name = [provider, model].filter((part) => part !== undefined).join("/");
  return (
    <>
      {stop !== undefined && <span className="transcript-stop">{stop}</span>}
      {name !== "" && <span>{visibleText(name.slice(0, 120))}</span>}
      {usage !== undefined && (
        <span title={`${usage.inputTokens} tokens read, ${usage.outputTokens} written`}>
          {formatTokens(usage.totalTokens)} tokens
        </span>
      )}
      {cost !== undefined && <span>{formatCost(cost)}</span>}
    </>
  );
}
