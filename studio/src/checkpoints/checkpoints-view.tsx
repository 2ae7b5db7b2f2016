import { type ReactNode, useState } from "react";
import type { CheckpointTimeline } from "skein/client";
import type { Checkpoint } from "../../../src/session/store.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import type { SessionProps } from "../session/session-props.ts";
import { CheckpointDiffPanel } from "./checkpoint-diff.tsx";
import { noteOf } from "./checkpoint-position.ts";
import { CheckpointRow } from "./checkpoint-row.tsx";
import { CreateCheckpointForm } from "./create-checkpoint-form.tsx";
import "./checkpoints.css";

const PAGE = 50;
/** The maximum number that the server returns at a time. */
const SHOWN_MAX = 1000;

/** The checkpoints of a session. */
export function CheckpointsView({ session, live }: SessionProps): ReactNode {
  const client = useClient();
  const { id, sandbox } = session.header;
  const [kept, setKept] = useState<Checkpoint | null>(null);
  const catalogue = useRevised("catalogue", 0, (signal) => client.catalogue({ signal }));
  const hasPlace = sandbox !== null || (catalogue.data?.hasPlace ?? null);
  const [shown, setShown] = useState(PAGE);
  const loaded = useRevised(id, `${live.revision} ${shown}`, (signal) =>
    client.checkpoints.timeline(id, { limit: shown, signal }),
  );
  return (
    <div className="checkpoints-view">
      <CreateCheckpointForm sessionId={id} hasPlace={hasPlace} onCreated={loaded.reload} />
      {kept !== null && (
        <output className="checkpoints-kept small">
          The files are those of the checkpoint again. What they were before is kept in the checkpoint{" "}
          <strong dir="auto">{visibleText(noteOf(kept) ?? kept.id)}</strong>; restore it with its files to undo this.
        </output>
      )}
      <RequestBoundary requested={loaded} what="the checkpoints">
        {(timeline) =>
          timeline.total === 0 ? (
            <p className="checkpoints-none soft">
              No checkpoints yet. A checkpoint saves the session's position, to compare it or go back to it later.
            </p>
          ) : (
            <Timeline
              sessionId={id}
              timeline={timeline}
              onMore={shown < SHOWN_MAX ? () => setShown(Math.min(SHOWN_MAX, shown + 4 * PAGE)) : null}
              hasPlace={hasPlace === true}
              onChanged={(made) => {
                setKept(made);
                loaded.reload();
              }}
            />
          )
        }
      </RequestBoundary>
    </div>
  );
}

interface TimelineProps {
  readonly sessionId: string;
  readonly timeline: CheckpointTimeline;
  /** Loads earlier ones; null if there are no more. */
  readonly onMore: (() => void) | null;
  readonly hasPlace: boolean;
  readonly onChanged: (kept: Checkpoint | null) => void;
}

function Timeline({ sessionId, timeline, hasPlace, onMore, onChanged }: TimelineProps): ReactNode {
  const { items: checkpoints, total } = timeline;
  const [chosen, setChosen] = useState<readonly string[]>([]);
  // The older one is the base of the comparison.
  const [to, from] = checkpoints.filter(({ id }) => chosen.includes(id));
  const choose = (id: string, isChosen: boolean): void => {
    const others = chosen.filter((other) => other !== id && checkpoints.some((one) => one.id === other));
    // When a third one is chosen, the first is deselected.
    setChosen(isChosen ? [...others, id].slice(-2) : others);
  };
  return (
    <div className="checkpoints-columns">
      <section aria-label="Timeline of checkpoints">
        <ol className="checkpoints-line">
          {checkpoints.map((checkpoint) => (
            <CheckpointRow
              key={checkpoint.id}
              sessionId={sessionId}
              checkpoint={checkpoint}
              chosen={chosen.includes(checkpoint.id)}
              hasPlace={hasPlace}
              onChoose={choose}
              onChanged={onChanged}
            />
          ))}
        </ol>
        {total > checkpoints.length && onMore !== null && (
          <button type="button" className="button" onClick={onMore}>
            Show earlier checkpoints ({(total - checkpoints.length).toLocaleString("en")} more)
          </button>
        )}
      </section>
      <section className="checkpoints-diff" aria-label="Difference between two checkpoints">
        {from === undefined || to === undefined ? (
          <p className="soft">
            {to === undefined ? "Choose two checkpoints" : "Choose one more checkpoint"} to see the differences.
          </p>
        ) : (
          <CheckpointDiffPanel key={`${from.id} ${to.id}`} sessionId={sessionId} from={from} to={to} />
        )}
      </section>
    </div>
  );
}
