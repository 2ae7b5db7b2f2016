import { type ReactNode, useMemo } from "react";
import type { Entry } from "../../../src/session/log/entry.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { visibleText } from "../markdown/visible-text.ts";
import { spokenText } from "../request/spoken-text.ts";
import { AgentBadge, colourClass } from "./agent-badge.tsx";
import type { GroupTurn } from "./group-turn.ts";
import { type AgentSight, seeAs, type ToldMessage } from "./see-as.ts";
import type { Speaker } from "./speakers.ts";

/** The messages that one agent of a group gets. */
export function AgentSightList({
  agent,
  entries,
  undone,
  speakers,
  turns,
}: {
  readonly agent: string;
  readonly entries: readonly Entry[];
  readonly undone: readonly string[];
  readonly speakers: readonly Speaker[];
  readonly turns: readonly GroupTurn[];
}): ReactNode {
  const sight = useMemo(() => trySeeAs(agent, entries, undone), [agent, entries, undone]);
  const byName = new Map(speakers.map((speaker) => [speaker.agent, speaker]));
  const speakerOf = new Map(
    turns.map((turn) => [turn.id, turn.role === "system" ? undefined : byName.get(turn.agent)]),
  );
  const name = visibleText(agent);
  if (sight === null) return <p role="alert">The messages of {name} cannot be shown: the log is damaged.</p>;
  return (
    <>
      <p className="group-sight" role="status">
        <strong>{name}</strong> gets {sight.told.length === 1 ? "one message" : `${sight.told.length} messages`};{" "}
        {sight.hidden === 0
          ? "no turn is hidden from it."
          : `${sight.hidden} ${sight.hidden === 1 ? "turn is" : "turns are"} hidden from it.`}{" "}
        <span className="small soft">Messages of others carry their name; a turn manager may hide more.</span>
      </p>
      <ol className="group-turns" aria-label={`What ${name} sees`}>
        {sight.told.map((told, index) => (
          <li key={told.entryId ?? `told-${index}`}>
            <ReceivedMessage told={told} agent={agent} speaker={speakerOf.get(told.entryId ?? "")} />
          </li>
        ))}
      </ol>
    </>
  );
}

function ReceivedMessage({
  told: { message },
  agent,
  speaker,
}: {
  readonly told: ToldMessage;
  readonly agent: string;
  readonly speaker: Speaker | undefined;
}): ReactNode {
  const own = speaker?.agent === agent;
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  const text = spokenText(message.content);
  return (
    <article className={`group-turn ${speaker === undefined ? "" : colourClass(speaker)}`}>
      <p className="group-turn-head small">
        {speaker === undefined ? <strong>The group</strong> : <AgentBadge speaker={speaker} />}
        <span className="tag">{own ? "own message" : `as a message of the ${message.role}`}</span>
      </p>
      {text !== "" && <Markdown text={text} />}
      {calls.length > 0 && <p className="small soft">calls {visibleText(calls.map(({ name }) => name).join(", "))}</p>}
    </article>
  );
}

/** Returns null for a partial path or a damaged log, instead of failing the page. */
function trySeeAs(agent: string, entries: readonly Entry[], undone: readonly string[]): AgentSight | null {
  try {
    return seeAs(agent, entries, undone);
  } catch {
    return null;
  }
}
