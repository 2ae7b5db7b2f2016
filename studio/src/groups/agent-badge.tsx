import type { ReactNode } from "react";
import { visibleText } from "../markdown/visible-text.ts";
import type { Speaker } from "./speakers.ts";

/** A speaker: coloured sign, name and role. */
export function AgentBadge({ speaker }: { readonly speaker: Pick<Speaker, "agent" | "role" | "colour"> }): ReactNode {
  const { agent, role } = speaker;
  const name = visibleText(agent ?? "People");
  return (
    <span className="group-badge">
      <span className={`group-sign ${colourClass(speaker)}`} aria-hidden="true">
        {[...name][0]?.toUpperCase()}
      </span>
      <strong className="group-name">{name}</strong>
      {role !== null && role !== agent && <span className="tag">{visibleText(role)}</span>}
    </span>
  );
}

/** The CSS class with a speaker's colour. */
export function colourClass({ agent, colour }: Pick<Speaker, "agent" | "colour">): string {
  return agent === null ? "group-colour-people" : `group-colour-${colour}`;
}
