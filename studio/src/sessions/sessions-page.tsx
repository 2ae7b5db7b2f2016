import type { ReactNode } from "react";
import { ProgramCards } from "../programs/program-cards.tsx";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import { ImportButton } from "./import/import-button.tsx";
import { useNewSession } from "./use-new-session.ts";
import "./sessions.css";
import "./sessions-page.css";

/** The start page, while no session is chosen. */
export function SessionsPage(): ReactNode {
  const client = useClient();
  const create = useNewSession();
  const catalogue = useRevised("catalogue", 0, (signal) => client.catalogue({ signal }));
  return (
    <div className="sessions-welcome">
      <h1>Sessions of your agents, in one place</h1>
      <p className="soft">
        Choose a session in the list to read, branch, compare or continue it. Or start a new one: it is named after its
        first message.
      </p>
      <div className="sessions-line">
        <button
          type="button"
          className="button button-primary"
          disabled={create.busy}
          onClick={() => void create.run()}
        >
          Start a session
        </button>
        <ImportButton />
      </div>
      {create.error !== null && (
        <p role="alert" className="sessions-problem">
          {create.error.message}
        </p>
      )}
      <ProgramCards />
      <section aria-labelledby="sessions-first">
        <h2 id="sessions-first" className="sessions-heading">
          What you can do
        </h2>
        <ol className="sessions-steps">
          <li>Send a message to an agent, and watch it answer and use its tools.</li>
          <li>Branch at any turn of the tree and try something else; both branches are kept.</li>
          <li>See the context of the model, and compact it when it grows too long.</li>
          <li>Compare two branches, merge them, and share the result as a file.</li>
        </ol>
      </section>
      <section aria-labelledby="sessions-agents">
        <h2 id="sessions-agents" className="sessions-heading">
          Agents
        </h2>
        <RequestBoundary requested={catalogue} what="the agents">
          {({ agents, groups }) =>
            agents.length + groups.length === 0 ? (
              <p className="soft">This server has no agents: sessions can be read, but not answered.</p>
            ) : (
              <ul className="sessions-steps">
                {agents.map(({ name, model, tools }) => (
                  <li key={name}>
                    <strong>{name}</strong> <span className="soft">on {model}</span>
                    {tools.length > 0 && (
                      <span className="soft">, with {tools.map((tool) => tool.name).join(", ")}</span>
                    )}
                  </li>
                ))}
                {groups.map(({ name, agents: members }) => (
                  <li key={name}>
                    <strong>{name}</strong>
                    <span className="soft">, a group of {members.map((member) => member.name).join(", ")}</span>
                  </li>
                ))}
              </ul>
            )
          }
        </RequestBoundary>
      </section>
      <p className="small soft">
        <kbd>/</kbd> searches, <kbd>n</kbd> starts a session, <kbd>↑</kbd> <kbd>↓</kbd> and <kbd>Enter</kbd> move in the
        list.
      </p>
    </div>
  );
}
