import { type ReactNode, useRef, useState } from "react";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { formatCount } from "../sessions/list/amounts.ts";
import { BackLink } from "../shell/back-link.tsx";
import { useTitle } from "../shell/use-title.ts";
import { type AnalyticsChoice, AnalyticsControls } from "./analytics-controls.tsx";
import { LatestSessions } from "./latest-sessions.tsx";
import { METRICS } from "./metric.ts";
import { daysOf, problemOf, timesOf } from "./period.ts";
import { SumCharts } from "./sum-charts.tsx";
import { Totals } from "./totals.tsx";
import { useAnalytics, useCallAnalytics } from "./use-analytics.ts";
import "./analytics.css";

/** The sums of a period: by day, model, user and tool, with latencies. */
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
  const messages = sums.data?.total?.messages ?? 0;
  const calls = useCallAnalytics(asked, messages);
  const users = useSeenUsers(sums.data?.byUser.map(({ user }) => user ?? null) ?? []);
  return (
    <div className="analytics">
      <BackLink />
      <h1>Analytics</h1>
      <AnalyticsControls choice={choice} onChange={setChoice} users={users} />
      <RequestBoundary requested={sums} what="the sums">
        {(data) => (
          <div className="analytics-parts" aria-busy={sums.loading}>
            {sums.error !== null && (
              <p role="alert" className="analytics-problem">
                These numbers are not up to date: {sums.error.message}
              </p>
            )}
            <Totals row={data.total} latency={calls.data?.latency} />
            {messages === 0 && <p className="soft">No messages in this time.</p>}
            {calls.error !== null && (
              <p role="alert" className="analytics-problem">
                Latency and tools cannot be shown: {calls.error.message}
              </p>
            )}
            <div className="analytics-charts">
              <SumCharts
                sums={data}
                calls={calls.data}
                days={daysOf(period, daysIn(data.byDay), now)}
                metric={metric}
              />
              <LatestSessions asked={asked} messages={messages} />
            </div>
            {calls.data?.complete === false && (
              <p className="soft small">
                Latency and tools are those of the latest {formatCount(calls.data.sessions)} sessions; what is older is
                left out.
              </p>
            )}
          </div>
        )}
      </RequestBoundary>
    </div>
  );
}

function daysIn(rows: readonly { readonly day?: string }[]): readonly string[] {
  return rows.flatMap(({ day }) => (day === undefined ? [] : [day]));
}

/** Every user seen in the sums so far: once a user is chosen, the sums contain no other. */
function useSeenUsers(users: readonly (string | null)[]): readonly string[] {
  const seen = useRef(new Set<string>());
  for (const user of users) if (user !== null) seen.current.add(user);
  return [...seen.current].sort();
}
