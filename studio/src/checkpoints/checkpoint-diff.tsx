import { type ReactNode, useState } from "react";
import type { SessionTurn } from "../../../src/session/state/state.ts";
import type { Checkpoint } from "../../../src/session/store.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { contentText } from "../request/message-text.ts";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useMay } from "../request/use-me.ts";
import { useRequest } from "../request/use-request.ts";
import { addressOf } from "../shell/route.ts";
import { CheckpointFiles } from "./checkpoint-files.tsx";
import { noteOf } from "./checkpoint-position.ts";
import { isNothing, stateChanges, type ValueChange, valueText } from "./state-changes.ts";
import "./checkpoint-diff.css";

const PAGE = 50;
const LINE_CHARACTERS = 300;

/** The differences between two checkpoints: turns, variables, totals, settings and files. */
export function CheckpointDiffPanel({
  sessionId,
  from,
  to,
}: {
  readonly sessionId: string;
  readonly from: Checkpoint;
  readonly to: Checkpoint;
}): ReactNode {
  const client = useClient();
  const may = useMay();
  const diff = useRequest(`${from.id} ${to.id}`, async (signal) => {
    const [forward, backward] = await Promise.all([
      client.checkpoints.diff(from.id, to.id, { files: may.files, signal }),
      client.checkpoints.diff(to.id, from.id, { files: false, signal }),
    ]);
    return { changes: stateChanges(forward.state, backward.state), forward };
  });
  return (
    <>
      <h2 className="checkpoints-title">
        <bdi>{nameOf(from)}</bdi> <span aria-hidden="true">→</span>
        <span className="only-for-readers">to</span> <bdi>{nameOf(to)}</bdi>
      </h2>
      <RequestBoundary requested={diff} what="the difference">
        {({ changes, forward }) => (
          <>
            {isNothing(changes) && <p className="soft">There is no difference in the log.</p>}
            <Values title="Totals" changes={changes.totals} />
            <Turns title="Added turns" sign="+" sessionId={sessionId} turns={changes.added} />
            <Turns
              title="Turns that are no longer on the path"
              sign="−"
              sessionId={sessionId}
              turns={changes.removed}
            />
            <Values title="Variables" changes={changes.variables} />
            <Values title="Settings" changes={changes.fields} />
            <Values title="Metadata" changes={changes.metadata} />
            <CheckpointFiles diff={forward} turns={changes.added} />
          </>
        )}
      </RequestBoundary>
    </>
  );
}

function nameOf(checkpoint: Checkpoint): string {
  const note = noteOf(checkpoint);
  return note === null ? `position ${checkpoint.version}` : visibleText(note);
}

function Values({ title, changes }: { readonly title: string; readonly changes: readonly ValueChange[] }): ReactNode {
  if (changes.length === 0) return null;
  return (
    <table className="checkpoints-values">
      <caption>{title}</caption>
      <thead className="small soft">
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Was</th>
          <th scope="col">Is</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ name, before, after, money }) => (
          <tr key={name}>
            <th scope="row">{visibleText(name)}</th>
            <td className={before === undefined ? "soft" : "checkpoints-removed"}>
              {visibleText(valueText(before, money).slice(0, LINE_CHARACTERS))}
            </td>
            <td className={after === undefined ? "soft" : "checkpoints-added"}>
              {visibleText(valueText(after, money).slice(0, LINE_CHARACTERS))}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface TurnsProps {
  readonly title: string;
  readonly sign: string;
  readonly sessionId: string;
  readonly turns: readonly SessionTurn[];
}

function Turns({ title, sign, sessionId, turns }: TurnsProps): ReactNode {
  const [shown, setShown] = useState(PAGE);
  if (turns.length === 0) return null;
  return (
    <div>
      <h3>
        {title} <span className="soft">({turns.length.toLocaleString("en")})</span>
      </h3>
      <ul className="checkpoints-turns small">
        {turns.slice(0, shown).map((turn) => (
          <li key={turn.turnId} className={sign === "+" ? "checkpoints-added" : "checkpoints-removed"}>
            <span aria-hidden="true">{sign} </span>
            <a href={addressOf({ page: "session", id: sessionId, view: "talk", options: { entry: turn.turnId } })}>
              {turn.role}
            </a>{" "}
            <bdi>{visibleText(lineOf(turn))}</bdi>
          </li>
        ))}
      </ul>
      {turns.length > shown && (
        <button type="button" className="button small" onClick={() => setShown(shown + 10 * PAGE)}>
          Show more turns ({(turns.length - shown).toLocaleString("en")} left)
        </button>
      )}
    </div>
  );
}

function lineOf({ content, toolCalls = [] }: SessionTurn): string {
  const text = contentText(content).slice(0, LINE_CHARACTERS);
  if (text !== "") return text;
  return toolCalls.length === 0 ? "(no text)" : `calls ${toolCalls.map(({ name }) => name).join(", ")}`;
}
