import { type ReactNode, useId } from "react";
import type { Client, ListedSession } from "skein/client";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import { COMPUTED_COST, formatCost, formatCount, formatDuration } from "../sessions/list/amounts.ts";
import { titleOf } from "../sessions/session-status.ts";
import { addressOf } from "../shell/route.ts";

/** How many sessions are measured; each needs a request. */
const SESSIONS_MAX = 10;

/** How many sessions are listed at most to find some of the period. */
const LISTED_MAX = 500;

interface Asked {
  readonly from?: string;
  readonly to?: string;
  readonly userId?: string;
}

interface MeasuredSession {
  readonly session: ListedSession;
  readonly sums: Awaited<ReturnType<Client["sessions"]["analytics"]>>;
}

/** The latest sessions of a period: how long they took, and which tools they used. */
export function LatestSessions({
  asked,
  messages,
}: {
  readonly asked: Asked;
  /** The number of messages; when it changes, the sessions are measured again. */
  readonly messages: number;
}): ReactNode {
  const client = useClient();
  const id = useId();
  const measured = useRevised(JSON.stringify(asked), messages, (signal) => measure(client, asked, signal));
  return (
    <div className="analytics-card analytics-wide">
      <h2 id={id} className="analytics-heading">
        The latest sessions
      </h2>
      <RequestBoundary requested={measured} what="the latest sessions">
        {(rows) =>
          rows.length === 0 ? (
            <p className="soft">No data in this period.</p>
          ) : (
            // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
            <section className="analytics-scroll" tabIndex={0} aria-labelledby={id}>
              <MeasuredTable rows={rows} labelledBy={id} />
            </section>
          )
        }
      </RequestBoundary>
    </div>
  );
}

function MeasuredTable({
  rows,
  labelledBy,
}: {
  readonly rows: readonly MeasuredSession[];
  readonly labelledBy: string;
}): ReactNode {
  return (
    <table className="analytics-table" aria-labelledby={labelledBy}>
      <thead>
        <tr>
          <th scope="col">Session</th>
          <th scope="col" className="analytics-number">
            Mean time between turns
          </th>
          <th scope="col" className="analytics-number">
            Length
          </th>
          <th scope="col" className="analytics-number">
            Turns
          </th>
          <th scope="col" className="analytics-number">
            Cost
          </th>
          <th scope="col">Tools</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ session, sums }) => (
          <tr key={session.header.id}>
            <th scope="row" className="analytics-session">
              <a href={addressOf({ page: "session", id: session.header.id, view: "talk", options: {} })}>
                <bdi>{titleOf(session)}</bdi>
              </a>
            </th>
            <td className="analytics-number">{sums.totalTurns < 2 ? "–" : formatDuration(sums.avgResponseTimeMs)}</td>
            <td className="analytics-number">
              {sums.totalTurns < 2 ? "–" : formatDuration(sums.durationSeconds * 1000)}
            </td>
            <td className="analytics-number">{formatCount(sums.totalTurns)}</td>
            <td className="analytics-number" title={sums.costComputed ? COMPUTED_COST : undefined}>
              {formatCost(sums.shownCost, sums.costComputed)}
            </td>
            <td>{sums.toolsInvoked.length === 0 ? "–" : sums.toolsInvoked.join(", ")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

async function measure(
  client: Client,
  { from = "", to, userId }: Asked,
  signal: AbortSignal,
): Promise<readonly MeasuredSession[]> {
  const whose = userId === undefined ? {} : { userId };
  const { items } = await client.sessions.list({ ...whose, limit: LISTED_MAX }, { signal });
  const chosen = items
    .filter(({ modifiedAt, messageCount }) => messageCount > 0 && modifiedAt >= from && (!to || modifiedAt < to))
    .slice(0, SESSIONS_MAX);
  return Promise.all(
    chosen.map(async (session) => ({
      session,
      sums: await client.sessions.analytics(session.header.id, { signal }),
    })),
  );
}
