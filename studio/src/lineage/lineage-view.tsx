import { type ReactNode, useEffect } from "react";
import type { LineageView as Lineage } from "skein/client";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import type { SessionProps } from "../session/session-props.ts";
import { formatCompact, formatCost } from "../sessions/list/amounts.ts";
import { addressOf } from "../shell/route.ts";
import { totalOf } from "./describe-session.ts";
import { LineageGraph } from "./lineage-graph.tsx";
import { LineageList } from "./lineage-list.tsx";
import { LineageText } from "./lineage-text.tsx";
import "./lineage.css";

const SHAPES = { graph: "Graph", list: "List" } as const;

/** The ancestors and descendants of a session. */
export function LineageView({ session, live, options }: SessionProps): ReactNode {
  const client = useClient();
  const { id } = session.header;
  const requested = useRevised(id, live.revision, async (signal) =>
    inOrder(await client.sessions.lineage(id, { signal })),
  );
  useReloadOnFocus(requested.reload);
  const shape = options.as === "list" ? "list" : "graph";
  return (
    <section className="lineage" aria-label="Lineage">
      <RequestBoundary requested={requested} what="the lineage">
        {(lineage) => (
          <>
            <div className="lineage-bar">
              <Totals lineage={lineage} />
              <nav aria-label="How the lineage is shown" className="lineage-shapes">
                {(["graph", "list"] as const).map((each) => (
                  <a
                    key={each}
                    className="button"
                    aria-current={each === shape ? "true" : undefined}
                    href={addressOf({
                      page: "session",
                      id,
                      view: "lineage",
                      options: each === "list" ? { as: each } : {},
                    })}
                  >
                    {SHAPES[each]}
                  </a>
                ))}
                <button type="button" className="button" onClick={requested.reload} disabled={requested.loading}>
                  Refresh
                </button>
              </nav>
            </div>
            {lineage.nodes.length === 1 && (
              <p className="soft">
                This session has no ancestors and no descendants. Its forks, merges and loops will be shown here.
              </p>
            )}
            {shape === "graph" ? (
              <LineageGraph lineage={lineage} currentId={id} />
            ) : (
              <LineageList lineage={lineage} currentId={id} />
            )}
            <LineageText sessionId={id} lineage={lineage} />
          </>
        )}
      </RequestBoundary>
    </section>
  );
}

/** Missing sessions first, as their age is unknown, then the others by age. */
function inOrder(lineage: Lineage): Lineage {
  return { ...lineage, nodes: lineage.nodes.toSorted((a, b) => ((a.createdAt ?? "") < (b.createdAt ?? "") ? -1 : 1)) };
}

function Totals({ lineage }: { readonly lineage: Lineage }): ReactNode {
  const total = totalOf(lineage);
  const figures = [
    ["Sessions", String(lineage.nodes.length)],
    ["Tokens to get here", formatCompact(lineage.usage.totalTokens)],
    ["Cost to get here", formatCost(lineage.cost)],
    ["Tokens in all", formatCompact(total.tokens)],
    ["Cost in all", formatCost(total.cost)],
  ] as const;
  return (
    <dl className="lineage-totals">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt className="small soft">{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Reloads when the page becomes visible: a fork made elsewhere does not notify this session. */
function useReloadOnFocus(reload: () => void): void {
  useEffect(() => {
    const look = (): void => {
      if (document.visibilityState === "visible") reload();
    };
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [reload]);
}
