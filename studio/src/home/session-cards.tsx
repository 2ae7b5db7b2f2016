import type { ReactNode } from "react";
import type { ListedSession } from "skein/client";
import { frameworkOf } from "../../../src/session/framework.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { ageOf, formatCost, formatCount, fullTime } from "../sessions/list/amounts.ts";
import { markOf, titleOf } from "../sessions/session-status.ts";
import { SessionMark } from "../sessions/session-mark.tsx";
import { addressOf } from "../shell/route.ts";

const FIRST_CHARACTERS = 140;

/** Sessions with their state, their size and the beginning of their first message. */
export function SessionCards({ sessions }: { readonly sessions: readonly ListedSession[] }): ReactNode {
  return (
    <ul className="card home-sessions">
      {sessions.map((session) => (
        <li key={session.header.id}>
          <SessionCard session={session} />
        </li>
      ))}
    </ul>
  );
}

function SessionCard({ session }: { readonly session: ListedSession }): ReactNode {
  const { header, name, firstMessage, messageCount, modifiedAt, cost } = session;
  const kept = frameworkOf(header);
  const first = name === null || firstMessage === name ? null : firstMessage;
  return (
    <a className="home-session" href={addressOf({ page: "session", id: header.id, view: "talk", options: {} })}>
      <span className="home-session-line">
        <span className="home-session-title">
          <bdi>{titleOf(session)}</bdi>
        </span>
        <SessionMark mark={markOf(session)} />
        {kept !== null && <span className="tag">{kept.framework}</span>}
        <span className="home-session-facts small soft">
          <span>{messageCount === 1 ? "1 message" : `${formatCount(messageCount)} messages`}</span>
          {cost > 0 && <span>{formatCost(cost)}</span>}
          <time dateTime={modifiedAt} title={fullTime(modifiedAt)}>
            {ageOf(modifiedAt, Date.now())}
          </time>
        </span>
      </span>
      {first !== null && (
        <bdi className="home-session-first small soft">{visibleText(first.slice(0, FIRST_CHARACTERS))}</bdi>
      )}
    </a>
  );
}
