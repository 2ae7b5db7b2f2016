import { type ReactNode, useMemo, useState } from "react";
import { siblingMessages } from "../../../src/session/log/siblings.ts";
import { BudgetNote } from "../budget/budget-note.tsx";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { Composer } from "../run/composer.tsx";
import { LiveRounds } from "../run/live-rounds-view.tsx";
import { roundsToShow } from "../run/live-rounds.ts";
import { OtherQuestions } from "../run/other-questions.tsx";
import { PendingMessagesView, usePendingMessages } from "../run/pending-messages.tsx";
import { RunBar } from "../run/run-bar.tsx";
import { FIRST_AGENT, type RunChoice } from "../run/run-choice.ts";
import { RunCallsContext, type RunCalls } from "../run/run-context.ts";
import { useQuestions } from "../run/use-questions.ts";
import { useRun } from "../run/use-run.ts";
import type { SessionProps } from "../session/session-props.ts";
import { TreePanel } from "../tree/tree-panel.tsx";
import { useTree } from "../tree/use-tree.ts";
import { labelsOf } from "./labels-of.ts";
import { isUnfinished, lastQuestion } from "./rows/rows.ts";
import { SiblingsContext } from "./rows/sibling-switch.tsx";
import { TalkActionsContext } from "./talk-actions.ts";
import { Transcript } from "./transcript.tsx";
import { useLoadedPath } from "./use-loaded-path.ts";
import { useMakeTalkActions } from "./use-talk-actions.ts";
import { useTreeShown } from "./use-tree-shown.ts";
import "./talk-view.css";

/** The transcript with the tree beside it, and the message field. */
export function TalkView(props: SessionProps): ReactNode {
  const { session, live, options } = props;
  const sessionId = session.header.id;
  const path = useLoadedPath(sessionId, live.revision);
  const entryId = options["entry"] ?? null;
  // The tree is loaded after the transcript, as it is slow for a long session.
  const tree = useTree(sessionId, live.revision, { wanted: path.held !== null, keep: entryId });
  const siblings = useMemo(() => siblingMessages(tree.data?.nodes ?? NOTHING), [tree.data]);
  const labels = useMemo(() => labelsOf(tree.data), [tree.data]);
  const run = useRun(props, path.reload);
  const [choice, setChoice] = useState<RunChoice>(FIRST_AGENT);
  const reload = (): void => {
    path.reload();
    live.reload();
  };
  const actions = useMakeTalkActions(sessionId, { run, choice, leafId: session.leafId, reload });
  const questions = useQuestions(props, run);
  const { tools, inner } = run.state;
  const running = run.id !== null;
  const calls = useMemo((): RunCalls => ({ tools, questions, running }), [tools, questions, running]);
  const entries = path.held?.entries ?? NOTHING;
  const pending = usePendingMessages(run.id, entries);
  const aside = useTreeShown();
  const [records, setRecords] = useState(false);
  const question = run.problem === null || path.held?.newer !== null ? null : lastQuestion(entries);
  const blocked = run.id !== null || session.running !== null || session.status !== "active";
  const rounds = roundsToShow(run.state.rounds, entries, path.askedAt);
  const answers = run.state.rounds.filter(({ endedAt }) => endedAt !== null).length;
  const requested = { data: path.held, error: path.error, loading: path.held === null, reload: path.reload };
  return (
    <TalkActionsContext value={actions}>
      <RunCallsContext value={calls}>
        <SiblingsContext value={siblings}>
          <div className={aside.shown ? "talk talk-with-tree" : "talk"}>
            <div className="talk-main">
              <div className="talk-bar">
                <button
                  type="button"
                  className="button button-plain small"
                  aria-pressed={records}
                  onClick={() => setRecords(!records)}
                >
                  Settings and records
                </button>
                <button
                  type="button"
                  className="button button-plain small"
                  aria-expanded={aside.shown}
                  onClick={() => aside.show(!aside.shown)}
                >
                  {aside.shown ? "Hide tree" : "Show tree"}
                </button>
              </div>
              <RequestBoundary requested={requested} what="the transcript">
                {() => (
                  <Transcript
                    sessionId={sessionId}
                    path={path}
                    labels={labels}
                    records={records}
                    entryId={entryId}
                    blocked={blocked}
                    starts={run.starts}
                  >
                    <LiveRounds rounds={rounds} agent={run.agent} continues={isUnfinished(entries)} />
                    <OtherQuestions sessionId={sessionId} entries={entries} rounds={rounds} inner={inner} />
                    <PendingMessagesView messages={pending.messages} />
                  </Transcript>
                )}
              </RequestBoundary>
              <RunBar
                session={session}
                run={run}
                asks={questions.length + inner.length > 0}
                onRetry={
                  question === null ? null : () => actions.replaceTurn(question.parentId, question.message.content)
                }
              />
              {/* Loaded again when a run begins and ends, and with each answer. */}
              <BudgetNote revision={`${run.id} ${answers}`} />
              <Composer session={session} run={run} choice={choice} onChoice={setChoice} onSaid={pending.add} />
            </div>
            {aside.shown && (
              <aside className="talk-tree" aria-label="Tree">
                <TreePanel {...props} tree={tree} onShowTurn={aside.uncover} />
              </aside>
            )}
          </div>
        </SiblingsContext>
      </RunCallsContext>
    </TalkActionsContext>
  );
}

const NOTHING: readonly never[] = [];
