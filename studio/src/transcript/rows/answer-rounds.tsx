import type { ReactNode } from "react";
import { AnswerBody } from "./answer-body.tsx";
import { SpentFacts } from "./answer-facts.tsx";
import { CallAnswer } from "./call-answer.tsx";
import { Fold } from "../content/fold.tsx";
import type { Round } from "./rows.ts";
import { type Spent, spentOn } from "./spent.ts";
import "./answer-rounds.css";

/** An answer: its rounds, collapsed under one heading if there are several, and its text. */
export function AnswerRounds({
  rounds,
  asked,
}: {
  readonly rounds: readonly Round[];
  /** The entry of a round that is shown open. */
  readonly asked: string | null;
}): ReactNode {
  const [last, earlier] = [rounds.at(-1), rounds.slice(0, -1)];
  const open = earlier.some((round) => idsIn(round).includes(asked ?? ""));
  return (
    <>
      {earlier.length === 1 && earlier.map((round) => <RoundBody key={round.entry.id} round={round} />)}
      {earlier.length > 1 && (
        // The key remounts it when a link asks for it, so that it opens.
        <Fold
          key={String(open)}
          open={open}
          className="transcript-rounds"
          title={<RoundFacts name={`${earlier.length} rounds`} spent={spentOn(earlier)} />}
        >
          <ol className="transcript-rounds-list" aria-label="Rounds before the answer">
            {earlier.map((round, index) => (
              <li key={round.entry.id} data-entries={idsIn(round).join(" ")}>
                <p>
                  <RoundFacts name={`Round ${index + 1}`} spent={spentOn([round])} />
                </p>
                <RoundBody round={round} />
              </li>
            ))}
          </ol>
        </Fold>
      )}
      {last !== undefined && <RoundBody round={last} />}
    </>
  );
}

function idsIn({ entry, results }: Round): readonly string[] {
  return [entry, ...results.values()].map(({ id }) => id);
}

function RoundFacts({ name, spent }: { readonly name: string; readonly spent: Spent }): ReactNode {
  return (
    <span className="transcript-facts small soft">
      <strong>{name}</strong>
      <span>{spent.calls === 1 ? "1 call" : `${spent.calls} calls`}</span>
      <SpentFacts spent={spent} />
    </span>
  );
}

function RoundBody({ round: { entry, results } }: { readonly round: Round }): ReactNode {
  return (
    <AnswerBody
      message={entry.message}
      resultOf={(callId) => results.get(callId)?.message ?? null}
      answerOf={(callId) => <CallAnswer callId={callId} after={entry.seq} before={results.get(callId)?.seq ?? null} />}
    />
  );
}
