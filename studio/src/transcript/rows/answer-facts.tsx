import type { ReactNode } from "react";
import type { AssistantMessage, StopReason } from "../../../../src/session/message.ts";
import { visibleText } from "../../markdown/visible-text.ts";
import { COMPUTED_COST, formatCompact, formatCost, formatDuration } from "../../sessions/list/amounts.ts";
import type { Spent } from "./spent.ts";

const STOPS: Readonly<Partial<Record<StopReason, string>>> = {
  length: "cut off: too long",
  content_filter: "refused",
  aborted: "stopped",
  error: "failed",
};

/** The model of an answer, its usage, and why it stopped early, if it did. */
export function AnswerFacts({
  message,
  spent,
}: {
  readonly message: AssistantMessage;
  readonly spent: Spent;
}): ReactNode {
  const { provider, model, stopReason } = message;
  const stop = stopReason === undefined ? undefined : STOPS[stopReason];
  const name = [provider, model].filter((part) => part !== undefined).join("/");
  return (
    <>
      {stop !== undefined && <span className="transcript-stop">{stop}</span>}
      {name !== "" && <span>{visibleText(name.slice(0, 120))}</span>}
      <SpentFacts spent={spent} />
    </>
  );
}

/** The known usage. */
export function SpentFacts({
  spent: { tokens, tokensRead, tokensWritten, cost, costComputed, tookMs },
}: {
  readonly spent: Spent;
}): ReactNode {
  return (
    <>
      {tokens !== null && (
        <span title={splitOf({ tokens, tokensRead, tokensWritten })}>{formatCompact(tokens)} tokens</span>
      )}
      {cost !== null && cost > 0 && (
        <span title={costComputed ? COMPUTED_COST : undefined}>{formatCost(cost, costComputed)}</span>
      )}
      {tookMs !== null && <span>{formatDuration(tookMs)}</span>}
    </>
  );
}

/** The input and output tokens, and the unspecified rest. */
function splitOf({
  tokens,
  tokensRead,
  tokensWritten,
}: { readonly [K in "tokens" | "tokensRead" | "tokensWritten"]: number }): string {
  const rest = tokens - tokensRead - tokensWritten;
  return `${tokensRead} tokens read, ${tokensWritten} written${rest > 0 ? `, ${rest} unspecified` : ""}`;
}
