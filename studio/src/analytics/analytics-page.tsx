import { type ReactNode, useRef, useState } from "react";
import { Shown } from "../request/shown.tsx";
import { BackLink } from "../shell/back-link.tsx";
import { useTitle } from "../shell/use-title.ts";
import { type AnalyticsChoice, AnalyticsControls } from "./analytics-controls.tsx";
import { DayChart } from "./day-chart.tsx";
import { LatencyTable } from "./latency-table.tsx";
import { METRICS } from "./metric.ts";
import { daysOf, problemOf, timesOf } from "./period.ts";
import { RankedBars } from "./ranked-bars.tsx";
import { Totals } from "./totals.tsx";
import { useAnalytics } from "./use-analytics.ts";
import "./analytics.css";

/** What sessions add up to over a period: by day, by model and by user. */
export function AnalyticsPage(): ReactNode {
  const [choice, setChoice] = useState<AnalyticsChoice>({
    period: { kind: "last", days: 30 },
    userId: "",
    metric: METRICS[0],
  });
  const { period, userId, metric } = choice;
  useTitle("Analytics");
  const now = Date.now();
  const times = problemOf(period) === null ? timesOf(period, now) : {};
  const asked = { ...times, ...(userId === "" ? {} : { userId }) };
  const sums = useAnalytics(asked);
  const users = useSeenUsers(sums.data?.byUser.map(({ user }) => user ?? null) ?? []);
  return (
    <div className="analytics">
      <BackLink />
      <h1>Analytics</h1>
      <AnalyticsControls choice={choice} onChange={setChoice} users={users} />
      <Shown requested={sums} what="the sums">
        {({ total, byDay, byModel, byUser }) => (
          <div className="analytics-parts" aria-busy={sums.loading}>
            {sums.error !== null && (
              <p role="alert" className="analytics-problem">
                These numbers are not up to date: {sums.error.message}
              </p>
            )}
            <Totals row={total} />
            {(total?.messages ?? 0) === 0 && <p className="soft">No messages in this time.</p>}
            <div className="analytics-charts">
              <DayChart days={daysOf(period, daysIn(byDay), now)} rows={byDay} metric={metric} />
              <RankedBars
                title={`${metric.name} by model`}
                column="Model"
                rows={byModel}
                nameOf={({ model }) => model ?? "No model"}
                metric={metric}
              />
              <RankedBars
                title={`${metric.name} by user`}
                column="User"
                rows={byUser}
                nameOf={({ user }) => user ?? "No user"}
                metric={metric}
              />
              <LatencyTable asked={asked} messages={total?.messages ?? 0} />
            </div>
          </div>
        )}
      </Shown>
    </div>
  );
}

function daysIn(rows: readonly { readonly day?: string }[]): readonly string[] {
  return rows.flatMap(({ day }) => (day === undefined ? [] : [day]));
}

/** Every user that was in the sums so far: once one is chosen, the sums name no other. */
function useSeenUsers(users: readonly (string | null)[]): readonly string[] {
  const seen = useRef(new Set<string>());
  for (const user of users) if (user !== null) seen.current.add(user);
  return [...seen.current].sort();
}
