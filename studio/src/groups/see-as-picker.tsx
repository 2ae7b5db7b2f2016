import type { ReactNode } from "react";
import { visibleText } from "../markdown/visible-text.ts";
import { goTo } from "../shell/route.ts";

/** Chooses the agent whose view is shown; the URL keeps the choice. */
export function SeeAsPicker({
  sessionId,
  agents,
  as,
}: {
  readonly sessionId: string;
  readonly agents: readonly string[];
  readonly as: string | null;
}): ReactNode {
  const names = as !== null && !agents.includes(as) ? [...agents, as] : agents;
  const choose = (agent: string): void =>
    goTo({ page: "session", id: sessionId, view: "group", options: agent === "" ? {} : { as: agent } });
  return (
    <div className="group-see">
      <h2>Turns</h2>
      <label className="group-see-label">
        See as
        <select className="field" value={as ?? ""} onChange={(event) => choose(event.target.value)}>
          <option value="">yourself: everything</option>
          {names.map((name) => (
            <option key={name} value={name}>
              {visibleText(name)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
