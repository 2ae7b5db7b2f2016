import type { ReactNode } from "react";
import { COMPUTED_COST, formatCompact, formatCost, formatCount, formatDuration } from "../sessions/list/amounts.ts";
import { type AnalyticsRow, type Latency, unsplitTokens } from "./metric.ts";

/** The totals of a period. */
export function Totals({
  row,
  latency,
}: {
  readonly row: AnalyticsRow | undefined;
  /** Null if no run has answered; undefined while it is loading. */
  readonly latency: Latency | null | undefined;
}): ReactNode {
  const usage = row?.usage ?? { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
  return (
    <dl className="analytics-totals">
      <Figure name="Cost" value={formatCost(row?.cost ?? 0)} />
      <Figure
        name="Tokens"
        value={formatCompact(usage.totalTokens)}
        full={formatCount(usage.totalTokens)}
        more={splitOf(usage)}
      />
      {/* Reserves its space while it is loading. */}
      <Figure
        name="Median latency"
        value={latency == null ? "–" : formatDuration(latency.medianMs)}
        more={latency == null ? "\u00a0" : `95 % in ${formatDuration(latency.p95Ms)}`}
      />
      {row?.imported !== undefined && (
        <Figure
          name="Imported (not in other numbers)"
          value={`${formatCompact(row.imported.usage.totalTokens)} tokens`}
          full={row.imported.costComputed ? COMPUTED_COST : undefined}
          more={`${formatCount(row.imported.messages)} messages, ${formatCost(row.imported.cost, row.imported.costComputed)}`}
        />
      )}
      <Figure name="Messages" value={formatCount(row?.messages ?? 0)} />
      <Figure name="Tool calls" value={formatCount(row?.toolCalls ?? 0)} />
      <Figure name="Sessions" value={formatCount(row?.sessions ?? 0)} />
      {(usage.cacheReadTokens ?? 0) > 0 && (
        <Figure
          name="Read from cache"
          value={formatCompact(usage.cacheReadTokens ?? 0)}
          more={`tokens, ${Math.round((100 * (usage.cacheReadTokens ?? 0)) / Math.max(1, usage.inputTokens))} % of the input`}
        />
      )}
      {(usage.cacheWriteTokens ?? 0) > 0 && (
        <Figure name="Written to cache" value={formatCompact(usage.cacheWriteTokens ?? 0)} more="tokens" />
      )}
      {(usage.reasoningTokens ?? 0) > 0 && (
        <Figure name="Thinking" value={formatCompact(usage.reasoningTokens ?? 0)} more="tokens" />
      )}
    </dl>
  );
}

function Figure({
  name,
  value,
  full,
  more,
}: {
  readonly name: string;
  readonly value: string;
  readonly full?: string | undefined;
  readonly more?: string;
}): ReactNode {
  return (
    <div className="analytics-card analytics-figure">
      <dt className="small soft">{name}</dt>
      <dd>
        <span className="analytics-value" title={full}>
          {value}
        </span>
        {more !== undefined && <span className="small soft"> {more}</span>}
      </dd>
    </div>
  );
}

/** The input and output tokens, and the rest, so that the parts add up. */
function splitOf(usage: AnalyticsRow["usage"]): string {
  const rest = unsplitTokens(usage);
  const parts = `${formatCompact(usage.inputTokens)} in, ${formatCompact(usage.outputTokens)} out`;
  return rest === 0 ? parts : `${parts}, ${formatCompact(rest)} unspecified`;
}
