import type { ReactNode } from "react";
import { timesOf } from "../analytics/period.ts";
import { useClient } from "../request/use-client.ts";
import type { Requested } from "../request/use-request.ts";
import { useRevised } from "../request/use-revised.ts";
import { useTicks } from "../request/use-ticks.ts";
import { formatCompact, formatCount } from "../sessions/list/amounts.ts";
import { addressOf } from "../shell/route.ts";
import { WEEK, type Week, weekOf } from "./week.ts";

/** Seldom, as the server reads the sessions of the week for it. */
const POLL_MS = 5 * 60_000;
const DAY_NAME = new Intl.DateTimeFormat("en", { weekday: "short", timeZone: "UTC" });

/** Loads the sums of the last seven days once they are `wanted`; reloaded while the page is visible. */
export function useWeek(wanted: boolean): Requested<Week | null> {
  const client = useClient();
  return useRevised(`week ${wanted}`, useTicks(POLL_MS), async (signal) => {
    if (!wanted) return null;
    const now = Date.now();
    const { rows } = await client.analytics({ ...timesOf(WEEK, now), groupBy: ["day"] }, { signal });
    return weekOf(rows, now);
  });
}

/** The last seven days in numbers, with the tokens of each day as bars. */
export function WeekCard({ week }: { readonly week: Week | null }): ReactNode {
  const most = Math.max(1, ...(week?.days ?? []).map(({ tokens }) => tokens));
  return (
    <section aria-labelledby="home-week">
      <h2 id="home-week" className="home-heading">
        Last 7 days
      </h2>
      <div className="card home-week">
        <dl className="home-figures">
          <Figure name="Cost" value={week?.cost} />
          <Figure name="Tokens" value={week && formatCompact(week.tokens)} />
          <Figure name="Messages" value={week && formatCount(week.messages)} />
          <Figure name="Tool calls" value={week && formatCount(week.toolCalls)} />
        </dl>
        {week?.imported != null && <p className="small soft">Imported, and not counted here: {week.imported}.</p>}
        <ol className="home-bars" aria-label="Tokens by day">
          {(week?.days ?? []).map(({ day, tokens }) => (
            <li key={day} title={`${day}: ${formatCount(tokens)} tokens`}>
              <span className="home-bar" style={{ height: `${(tokens / most) * 100}%` }} />
              <span className="home-day soft">
                {DAY_NAME.format(Date.parse(day))}
                <span className="only-for-readers">: {formatCount(tokens)} tokens</span>
              </span>
            </li>
          ))}
        </ol>
        <a className="small" href={addressOf({ page: "analytics" })}>
          All figures
        </a>
      </div>
    </section>
  );
}

function Figure({ name, value }: { readonly name: string; readonly value: string | null | undefined }): ReactNode {
  return (
    <div>
      <dt className="small soft">{name}</dt>
      <dd>{value ?? "…"}</dd>
    </div>
  );
}
