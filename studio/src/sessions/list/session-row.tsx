import type { ReactNode } from "react";
import { frameworkOf } from "../../../../src/session/framework.ts";
import { visibleText } from "../../markdown/visible-text.ts";
import { addressOf } from "../../shell/route.ts";
import { ageOf, formatCost, fullTime } from "./amounts.ts";
import type { SessionRow as Row } from "./read-sessions.ts";
import { fromFirstMatch, markedPieces } from "./search-marks.ts";
import { markOf, titleOf } from "../session-status.ts";
import { SessionMark } from "../session-mark.tsx";

const MATCHES_MAX = 3;

/** One session of the list; a deleted one can only be restored. */
export function SessionRow({
  row: { session, matches },
  search,
  selected,
  tabbable,
  onRestore,
}: SessionRowProps): ReactNode {
  const { id } = session.header;
  const about = <About row={{ session, matches }} deleted={onRestore !== null} />;
  if (onRestore !== null) {
    return (
      <div className="sessions-row">
        {about}
        <button type="button" className="button small" onClick={() => onRestore(id)}>
          Restore<span className="only-for-readers"> {titleOf(session)}</span>
        </button>
      </div>
    );
  }
  return (
    <>
      <a
        className="sessions-row"
        href={addressOf({ page: "session", id, view: "talk", options: {} })}
        aria-current={selected ? "page" : undefined}
        tabIndex={tabbable ? 0 : -1}
      >
        {about}
      </a>
      {matches.slice(0, MATCHES_MAX).map(({ entryId, text }) => (
        <a
          key={entryId}
          className="sessions-match small"
          href={addressOf({ page: "session", id, view: "talk", options: { entry: entryId } })}
        >
          <Marked text={fromFirstMatch(text, search)} search={search} />
        </a>
      ))}
    </>
  );
}

/** The props of a row. */
export interface SessionRowProps {
  readonly row: Row;
  readonly search: string;
  readonly selected: boolean;
  /** Whether the Tab key stops here; arrow keys lead to the other rows. */
  readonly tabbable: boolean;
  readonly onRestore: ((id: string) => void) | null;
}

function About({ row: { session }, deleted }: { readonly row: Row; readonly deleted: boolean }): ReactNode {
  const { userId, cwd, forkedFrom } = session.header;
  const kept = frameworkOf(session.header);
  const whereabouts = [cwd, userId === null ? null : `User ${userId}`].filter((part) => part !== null).join("\n");
  return (
    <>
      <span className="sessions-title" title={whereabouts === "" ? undefined : whereabouts}>
        <bdi>{titleOf(session)}</bdi>
      </span>
      <span className="sessions-facts small soft">
        <time dateTime={session.modifiedAt} title={fullTime(session.modifiedAt)}>
          {ageOf(session.modifiedAt, Date.now())}
        </time>
        {forkedFrom?.branchName !== undefined && (
          <span className="sessions-branch" title={`Branch ${forkedFrom.branchName}`}>
            <span aria-hidden="true">↳ </span>
            <bdi>{forkedFrom.branchName}</bdi>
          </span>
        )}
        {kept !== null && (
          <span className="tag" title={`Thread ${visibleText(kept.thread)}`}>
            {kept.framework}
          </span>
        )}
        {session.cost > 0 && (
          <span className="sessions-cost" title="Cost">
            {formatCost(session.cost)}
          </span>
        )}
        {deleted ? <span className="tag">Deleted</span> : <SessionMark mark={markOf(session)} />}
      </span>
    </>
  );
}

function Marked({ text, search }: { readonly text: string; readonly search: string }): ReactNode {
  let offset = 0;
  return (
    <bdi>
      {markedPieces(text, search).map((piece) => {
        const key = offset;
        offset += piece.text.length;
        return piece.marked ? <mark key={key}>{piece.text}</mark> : <span key={key}>{piece.text}</span>;
      })}
    </bdi>
  );
}
