import type { ReactNode } from "react";
import type { AssistantMessage } from "../../../src/session/message.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { AnswerBody } from "../transcript/rows/answer-body.tsx";
import { Thinking } from "../transcript/content/content-view.tsx";
import { RowHead } from "../transcript/rows/row-head.tsx";
import { ToolCallView } from "../transcript/content/tool-call-view.tsx";
import type { LiveRound } from "./run-state.ts";
import "./run.css";

/** The rounds of a run that are not in the log yet, drawn as turns. */
export function LiveRounds({
  rounds,
  agent,
  continues,
}: {
  readonly rounds: readonly LiveRound[];
  /** The agent that answers; null in a group. */
  readonly agent: string | null;
  /** Whether the first round continues the answer above. */
  readonly continues: boolean;
}): ReactNode {
  return (
    <ol className="transcript-rows run-rounds" aria-busy={rounds.some(({ endedAt }) => endedAt === null)}>
      {rounds.map((round, index) => (
        <li key={round.key} className="transcript-row transcript-row-answer run-round">
          <RowHead
            {...(round.agent === null && (continues || index > 0)
              ? { speaker: "note", name: "Next round" }
              : { speaker: "assistant", name: round.agent ?? agent ?? "Assistant" })}
            timestamp={null}
            facts={round.message === null && <RoundState round={round} />}
          />
          {round.message === null ? <Unfinished round={round} /> : <Finished message={round.message} />}
        </li>
      ))}
    </ol>
  );
}

function RoundState({ round: { attempt, endedAt } }: { readonly round: LiveRound }): ReactNode {
  if (endedAt !== null) return <span>interrupted</span>;
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
