import { type ReactNode, useState } from "react";
import { Markdown } from "../markdown/markdown.tsx";
import { visibleText } from "../markdown/visible-text.ts";
import { ageOf, formatCompact, formatCost, fullTime } from "../sessions/list/amounts.ts";
import { AgentBadge, colourClass } from "./agent-badge.tsx";
import type { GroupTurn } from "./group-turn.ts";
import type { Speaker } from "./speakers.ts";

const SHOWN_FIRST = 60;
const SHOWN_MORE = 200;

const KINDS: Readonly<Record<GroupTurn["kind"], string | null>> = {
  said: null,
  work: "step",
  passed: "passed",
  refused: "refused",
  failed: "failed",
  ended: null,
  note: "note",
};

/** All turns of a group, each with the agents that may see it. */
export function GroupTurnList({
  turns,
  speakers,
}: {
  readonly turns: readonly GroupTurn[];
  readonly speakers: readonly Speaker[];
}): ReactNode {
  const [shown, setShown] = useState(SHOWN_FIRST);
  const byName = new Map(speakers.map((speaker) => [speaker.agent, speaker]));
  return (
    <>
      {turns.length > shown && (
        <button type="button" className="button group-earlier" onClick={() => setShown(shown + SHOWN_MORE)}>
          Show earlier turns
        </button>
      )}
      <ol className="group-turns" aria-label="Turns">
        {turns.slice(-shown).map((turn) => (
          <li key={turn.id}>
            <Turn turn={turn} speaker={turn.role === "system" ? undefined : byName.get(turn.agent)} />
          </li>
        ))}
      </ol>
    </>
  );
}

function Turn({ turn, speaker }: { readonly turn: GroupTurn; readonly speaker: Speaker | undefined }): ReactNode {
  const { kind, role, text, calls, model, tokens, cost, timestamp } = turn;
  if (kind === "ended") return <p className="group-ended small soft">{text}</p>;
  const known = speaker !== undefined && kind !== "note" && (turn.agent !== null || role === "user");
  return (
    <article className={`group-turn group-turn-${kind} ${known ? colourClass(speaker) : ""}`}>
      <p className="group-turn-head small">
        {known ? <AgentBadge speaker={speaker} /> : <strong>{kind === "note" ? "Note" : (role ?? "session")}</strong>}
        {KINDS[kind] !== null && kind !== "note" && <span className="tag">{KINDS[kind]}</span>}
        <Visibility turn={turn} />
        <span className="soft">
          {model !== null && `${visibleText(model)} · `}
          {tokens > 0 && `${formatCompact(tokens)} tokens · ${formatCost(cost)} · `}
          <time dateTime={timestamp} title={fullTime(timestamp)}>
            {ageOf(timestamp, Date.now())}
          </time>
        </span>
      </p>
      {text !== "" && <Markdown text={text} />}
      {kind === "passed" && text === "" && <p className="soft">passed</p>}
      {calls.length > 0 && <p className="small soft">calls {visibleText(calls.join(", "))}</p>}
    </article>
  );
}

function Visibility({ turn: { visibleTo, hiddenFrom } }: { readonly turn: GroupTurn }): ReactNode {
  if (visibleTo !== null) {
    return (
      <span className="group-private">
        {visibleTo.length === 0 ? "visible to nobody" : `only visible to ${list(visibleTo)}`}
      </span>
    );
  }
  return hiddenFrom === null ? null : <span className="group-private">hidden from {list(hiddenFrom)}</span>;
}

function list(names: readonly string[]): string {
  return visibleText(names.join(", "));
}
