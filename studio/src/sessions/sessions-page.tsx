import type { ReactNode } from "react";
import { Shown } from "../request/shown.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import { ImportButton } from "./import/import-button.tsx";
import { useNewSession } from "./use-new-session.ts";
import "./sessions.css";
import "./sessions-page.css";

/** What is shown while no session is chosen: what there is to do first. */
export function SessionsPage(): ReactNode {
  const client = useClient();
  const create = useNewSession();
  const catalogue = useRevised("catalogue", 0, (signal) => client.catalogue({ signal }));
  return (
    <div className="sessions-welcome">
      <h1>Sessions of your agents, in one place</h1>
      <p className="soft">
        Choose a session in the list to read it, branch it, compare it and go on with it. Or begin a new one: its first
        message names it.
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
      <section aria-labelledby="sessions-first">
        <h2 id="sessions-first" className="sessions-heading">
          What to try first
        </h2>
        <ol className="sessions-steps">
          <li>Say something to an agent, and watch it answer and use its tools.</li>
          <li>Branch at any turn of the tree, and try another way; both stay.</li>
          <li>Look at what the model sees, and compact it when it grows long.</li>
          <li>Compare two branches, merge them, and share the result as a file.</li>
        </ol>
      </section>
      <section aria-labelledby="sessions-agents">
        <h2 id="sessions-agents" className="sessions-heading">
          Who answers here
        </h2>
        <Shown requested={catalogue} what="the agents">
          {({ agents, groups }) =>
            agents.length + groups.length === 0 ? (
              <p className="soft">This server offers no agents: sessions can be read, and nothing answers in them.</p>
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
        </Shown>
      </section>
      <p className="small soft">
        <kbd>/</kbd> searches, <kbd>n</kbd> begins a session, <kbd>↑</kbd> <kbd>↓</kbd> and <kbd>Enter</kbd> go through
        the list.
      </p>
    </div>
  );
}
