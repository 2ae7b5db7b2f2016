import type { ReactNode } from "react";
import { visibleText } from "../markdown/visible-text.ts";
import type { Speaker } from "./speakers.ts";

/** Who speaks: a sign in their colour, the name and the role. */
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

/** The class that gives a speaker their colour. */
export function colourClass({ agent, colour }: Pick<Speaker, "agent" | "colour">): string {
  return agent === null ? "group-colour-people" : `group-colour-${colour}`;
}
