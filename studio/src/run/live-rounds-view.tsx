import type { ReactNode } from "react";
import type { AssistantMessage } from "../../../src/session/message.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { AnswerBody } from "../transcript/rows/answer-body.tsx";
import { AnswerFacts } from "../transcript/rows/answer-facts.tsx";
import { Thinking } from "../transcript/content/content-view.tsx";
import { RowHead } from "../transcript/rows/row-head.tsx";
import { ToolCallView } from "../transcript/content/tool-call-view.tsx";
import type { LiveRound } from "./run-state.ts";
import "./run.css";

/** What is being said: the turns of a run that the log does not have yet, drawn as they will be. */
export function LiveRounds({
  rounds,
  agent,
}: {
  readonly rounds: readonly LiveRound[];
  /** The agent that answers, outside of a group. */
  readonly agent: string | null;
}): ReactNode {
  return (
    <ol className="transcript-rows run-rounds" aria-busy={rounds.some(({ endedAt }) => endedAt === null)}>
      {rounds.map((round) => (
        <li key={round.key} className="transcript-row transcript-row-answer run-round">
          <RowHead
            speaker="assistant"
            name={round.agent ?? agent ?? "Assistant"}
            timestamp={null}
            facts={round.message === null ? <RoundState round={round} /> : <AnswerFacts message={round.message} />}
          />
          {round.message === null ? <Unfinished round={round} /> : <Finished message={round.message} />}
        </li>
      ))}
    </ol>
  );
}

function RoundState({ round: { attempt, endedAt } }: { readonly round: LiveRound }): ReactNode {
  if (endedAt !== null) return <span>broken off</span>;
  return <span>{attempt === null ? "writing …" : `try ${attempt} …`}</span>;
}

function Finished({ message }: { readonly message: AssistantMessage }): ReactNode {
  return <AnswerBody message={message} resultOf={() => null} />;
}

function Unfinished({ round: { text, thinking, calls } }: { readonly round: LiveRound }): ReactNode {
  return (
    <>
      {thinking !== "" && <Thinking text={thinking} />}
      {text !== "" && <Markdown text={text} />}
      {calls.map((call) => (
        <ToolCallView key={call.id} call={call} result={null} />
      ))}
      {text === "" && thinking === "" && calls.length === 0 && (
        <p className="run-waiting" aria-hidden="true">
          <span />
          <span />
          <span />
        </p>
      )}
    </>
  );
}
