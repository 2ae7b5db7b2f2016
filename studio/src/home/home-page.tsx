import { type ReactNode, useEffect } from "react";
import type { Catalogue, ListedSession, Page } from "skein/client";
import { BudgetBars } from "../budget/budget-bars.tsx";
import { useBudget } from "../budget/use-budget.ts";
import { ProgramCards } from "../programs/program-cards.tsx";
import { countOf, useInbox } from "../questions/use-inbox.ts";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import { useTicks } from "../request/use-ticks.ts";
import { ImportButton } from "../sessions/import/import-button.tsx";
import { useNewSession } from "../sessions/use-new-session.ts";
import { Icon } from "../shell/icon.tsx";
import { SessionCards } from "./session-cards.tsx";
import { Tile } from "./tile.tsx";
import type { Week } from "./week.ts";
import { useWeek, WeekCard } from "./week-card.tsx";
import "./home.css";

/** How often it is reloaded while it is visible. */
const POLL_MS = 5000;
const BUDGET_POLL_MS = 30_000;
const RUNS_MAX = 5;
const RECENT_MAX = 8;

/** The first page: what runs, what waits for the user, what was said lately, and what the week has cost. */
export function HomePage(): ReactNode {
  const client = useClient();
  const create = useNewSession();
  const inbox = useInbox();
  const { reload } = inbox;
  useEffect(reload, [reload]);
  const now = useRevised("home", useTicks(POLL_MS), async (signal): Promise<Now> => {
    const list = (query: Parameters<typeof client.sessions.list>[0]): Promise<Page<ListedSession>> =>
      client.sessions.list(query, { signal });
    const [recent, running, asking, interrupted] = await Promise.all([
      list({ limit: RECENT_MAX }),
      list({ runs: "running", limit: RUNS_MAX }),
      list({ runs: "asking", limit: RUNS_MAX }),
      list({ runs: "interrupted", limit: RUNS_MAX }),
    ]);
    return { recent, running, asking, interrupted };
  });
  // Loaded after the lists, which the server returns faster.
  const week = useWeek(now.data !== null);
  return (
    <div className="home">
      <header className="home-head">
        <h1>Overview</h1>
        <div className="home-actions">
          <button
            type="button"
            className="button button-primary"
            disabled={create.busy}
            onClick={() => void create.run()}
          >
            <Icon name="plus" />
            Start a session
          </button>
          <ImportButton />
        </div>
      </header>
      {create.error !== null && (
        <p role="alert" className="problem">
          {create.error.message}
        </p>
      )}
      <ProgramCards />
      <Tiles now={now.data} questions={inbox.data === null ? null : countOf(inbox.data)} week={week.data} />
      <RequestBoundary requested={now} what="the sessions">
        {(data) => (
          <div className="home-columns">
            <div className="home-column">
              <GoingOn sessions={openOf(data)} />
              {data.recent.items.length === 0 ? <FirstSteps /> : <Recent sessions={quietOf(data)} />}
            </div>
            <div className="home-column">
              <WeekCard week={week.data} />
              <Budget />
              <Agents />
            </div>
          </div>
        )}
      </RequestBoundary>
      <p className="small soft home-keys">
        <kbd>/</kbd> searches, <kbd>n</kbd> starts a session, <kbd>Ctrl K</kbd> or <kbd>⌘K</kbd> goes anywhere.
      </p>
    </div>
  );
}

/** The first sessions of each kind. */
interface Now {
  readonly recent: Page<ListedSession>;
  readonly running: Page<ListedSession>;
  readonly asking: Page<ListedSession>;
  readonly interrupted: Page<ListedSession>;
}

function Tiles({
  now,
  questions,
  week,
}: {
  readonly now: Now | null;
  readonly questions: string | null;
  readonly week: Week | null;
}): ReactNode {
  return (
    <ul className="home-tiles">
      <Tile page="fleet" icon="spark" name="Running" value={now === null ? null : amountOf(busyOf(now))} tone="good" />
      <Tile page="questions" icon="question" name="Waiting for you" value={questions} tone="warning" />
      <Tile page="fleet" icon="clock" name="Interrupted" value={now && amountOf(now.interrupted)} tone="warning" />
      <Tile page="analytics" icon="chart" name="Cost of the week" value={week?.cost ?? null} tone="plain" />
    </ul>
  );
}

function amountOf({ items, next }: Page<ListedSession>): string {
  return `${items.length}${next === null ? "" : "+"}`;
}

/** The running sessions without those whose run only waits for an answer. */
function busyOf({ running, asking }: Now): Page<ListedSession> {
  const waiting = new Set(asking.items.map(({ header }) => header.id));
  return { ...running, items: running.items.filter(({ header }) => !waiting.has(header.id)) };
}

/** The sessions with an open run: those that wait for the user first. */
function openOf({ running, asking, interrupted }: Now): readonly ListedSession[] {
  const byId = new Map([...asking.items, ...interrupted.items, ...running.items].map((each) => [each.header.id, each]));
  return [...byId.values()];
}

/** The latest sessions without those that are listed as going on. */
function quietOf(now: Now): readonly ListedSession[] {
  const open = new Set(openOf(now).map(({ header }) => header.id));
  return now.recent.items.filter(({ header }) => !open.has(header.id));
}

function GoingOn({ sessions }: { readonly sessions: readonly ListedSession[] }): ReactNode {
  return (
    <section aria-labelledby="home-now">
      <h2 id="home-now" className="home-heading">
        Going on
      </h2>
      {sessions.length === 0 ? (
        <p className="card soft home-quiet">Nothing runs, and nothing waits for you.</p>
      ) : (
        <SessionCards sessions={sessions} />
      )}
    </section>
  );
}

function Recent({ sessions }: { readonly sessions: readonly ListedSession[] }): ReactNode {
  if (sessions.length === 0) return null;
  return (
    <section aria-labelledby="home-recent">
      <h2 id="home-recent" className="home-heading">
        Recent
      </h2>
      <SessionCards sessions={sessions} />
    </section>
  );
}

/** What the user has used up of the server's budgets; nothing without any. */
function Budget(): ReactNode {
  const levels = useBudget(useTicks(BUDGET_POLL_MS));
  if (levels.length === 0) return null;
  return (
    <section aria-labelledby="home-budget" className="home-budget">
      <h2 id="home-budget" className="home-heading">
        Your budget
      </h2>
      <div className="card">
        <BudgetBars levels={levels} />
      </div>
    </section>
  );
}

function FirstSteps(): ReactNode {
  return (
    <section aria-labelledby="home-first">
      <h2 id="home-first" className="home-heading">
        What you can do
      </h2>
      <ol className="card home-steps">
        <li>Send a message to an agent, and watch it answer and use its tools.</li>
        <li>Branch at any turn of the tree and try something else; both branches are kept.</li>
        <li>See the context of the model, and compact it when it grows too long.</li>
        <li>Compare two branches, merge them, and share the result as a file.</li>
      </ol>
    </section>
  );
}

function Agents(): ReactNode {
  const client = useClient();
  const catalogue = useRevised("catalogue", 0, (signal) => client.catalogue({ signal }));
  return (
    <section aria-labelledby="home-agents">
      <h2 id="home-agents" className="home-heading">
        Agents
      </h2>
      <div className="card">
        <RequestBoundary requested={catalogue} what="the agents">
          {(data) => <AgentList catalogue={data} />}
        </RequestBoundary>
      </div>
    </section>
  );
}

function AgentList({ catalogue: { agents, groups } }: { readonly catalogue: Catalogue }): ReactNode {
  if (agents.length + groups.length === 0) {
    return <p className="soft">This server has no agents: sessions can be read, but not answered.</p>;
  }
  return (
    <ul className="home-agents">
      {agents.map(({ name, model, tools }) => (
        <li key={name}>
          <p className="home-agent">
            <strong>{name}</strong> <span className="small soft">{model}</span>
          </p>
          {tools.length > 0 && (
            <details className="small">
              <summary className="soft">{tools.length === 1 ? "1 tool" : `${tools.length} tools`}</summary>
              <ul className="home-tools">
                {tools.map((tool) => (
                  <li key={tool.name}>
                    <code>{tool.name}</code>
                  </li>
                ))}
              </ul>
            </details>
          )}
        </li>
      ))}
      {groups.map(({ name, agents: members }) => (
        <li key={name}>
          <p className="home-agent">
            <strong>{name}</strong> <span className="small soft">group</span>
          </p>
          <p className="small soft">{members.map((member) => member.name).join(", ")}</p>
        </li>
      ))}
    </ul>
  );
}
