import { type ReactNode, useEffect } from "react";
import type { RunView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";
import { ApprovalCard } from "../run/approval-card.tsx";
import { titleOf } from "../sessions/session-status.ts";
import { BackLink } from "../shell/back-link.tsx";
import { addressOf } from "../shell/route.ts";
import { useTitle } from "../shell/use-title.ts";
import { useInbox } from "./use-inbox.ts";
import "./questions.css";

/** All open questions of all sessions, each with its card and a link to its session. */
export function QuestionsPage(): ReactNode {
  const inbox = useInbox();
  const { reload } = inbox;
  useTitle("Questions");
  // Reloads when the page is opened.
  useEffect(reload, [reload]);
  return (
    <div className="questions">
      <BackLink />
      <h1>Questions</h1>
      <RequestBoundary requested={inbox} what="the questions">
        {({ items, next }) => (
          <>
            {inbox.error !== null && (
              <p role="alert" className="questions-problem">
                This may not be up to date: {inbox.error.message}
              </p>
            )}
            {items.length === 0 ? (
              <p className="soft">
                No run waits for an answer. What a run asks is listed here until someone answers or its time is over.
              </p>
            ) : (
              <ul className="questions-runs">
                {items.map((run) => (
                  <li key={`${run.sessionId} ${run.runId}`}>
                    <AskingRun run={run} />
                  </li>
                ))}
              </ul>
            )}
            {next !== null && <p className="soft">There are more; they are shown when these are answered.</p>}
          </>
        )}
      </RequestBoundary>
    </div>
  );
}

function AskingRun({ run }: { readonly run: RunView }): ReactNode {
  const client = useClient();
  const { sessionId, userId, agent, group, by } = run;
  const session = useRequest(sessionId, (signal) => client.sessions.get(sessionId, { signal }));
  const who = [
    agent ?? group,
    userId === null ? null : `in a session of ${userId}`,
    by === null || by === userId ? null : `asked by ${by}`,
  ].filter((part) => part !== null);
  return (
    <article className="questions-run" aria-label={session.data === null ? sessionId : titleOf(session.data)}>
      <header className="questions-head">
        <a href={addressOf({ page: "session", id: sessionId, view: "talk", options: {} })}>
          <bdi>{session.data === null ? sessionId : titleOf(session.data)}</bdi>
        </a>
        <span className="small soft">{visibleText(who.join(", ").slice(0, 300))}</span>
      </header>
      {run.questions.map((asked) => (
        <ApprovalCard key={asked.question} sessionId={sessionId} asked={asked} />
      ))}
    </article>
  );
}
