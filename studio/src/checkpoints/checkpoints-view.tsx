import { type ReactNode, useMemo, useState } from "react";
import type { TreeView } from "skein/client";
import type { Checkpoint } from "../../../src/session/store.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { Shown } from "../request/shown.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import type { SessionProps } from "../session/session-props.ts";
import { CheckpointDiffPanel } from "./checkpoint-diff.tsx";
import { noteOf, placeFinder } from "./checkpoint-place.ts";
import { CheckpointRow } from "./checkpoint-row.tsx";
import { CreateCheckpointForm } from "./create-checkpoint-form.tsx";
import "./checkpoints.css";

const PAGE = 100;

/** The checkpoints of a session. */
export function CheckpointsView({ session, live }: SessionProps): ReactNode {
  const client = useClient();
  const { id, sandbox } = session.header;
  const [kept, setKept] = useState<Checkpoint | null>(null);
  const catalogue = useRevised("catalogue", 0, (signal) => client.catalogue({ signal }));
  const hasPlace = sandbox !== null || (catalogue.data?.hasPlace ?? null);
  const loaded = useRevised(id, live.revision, async (signal) => {
    const [checkpoints, tree] = await Promise.all([
      client.checkpoints.list(id, { signal }),
      client.sessions.tree(id, { signal }),
    ]);
    return { checkpoints, tree };
  });
  return (
    <div className="checkpoints-view">
      <CreateCheckpointForm sessionId={id} hasPlace={hasPlace} onCreated={loaded.reload} />
      {kept !== null && (
        <output className="checkpoints-kept small">
          The files are those of the checkpoint again. What they were before is kept in the checkpoint{" "}
          <strong dir="auto">{visibleText(noteOf(kept) ?? kept.id)}</strong>; restore it with its files to undo this.
        </output>
      )}
      <Shown requested={loaded} what="the checkpoints">
        {({ checkpoints, tree }) =>
          checkpoints.length === 0 ? (
            <p className="checkpoints-none soft">
              No checkpoints yet. One marks where the session stands, so that it can be compared and returned to.
            </p>
          ) : (
            <Timeline
              sessionId={id}
              checkpoints={checkpoints}
              tree={tree}
              hasPlace={hasPlace === true}
              onChanged={(made) => {
                setKept(made);
                loaded.reload();
              }}
            />
          )
        }
      </Shown>
    </div>
  );
}

interface TimelineProps {
  readonly sessionId: string;
  readonly checkpoints: readonly Checkpoint[];
  readonly tree: TreeView;
  readonly hasPlace: boolean;
  readonly onChanged: (kept: Checkpoint | null) => void;
}

function Timeline({ sessionId, checkpoints, tree, hasPlace, onChanged }: TimelineProps): ReactNode {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [shown, setShown] = useState(PAGE);
  const placeOf = useMemo(() => placeFinder(tree), [tree]);
  // In the order of the list: the older one is what is compared from.
  const compared = checkpoints.filter(({ id }) => chosen.includes(id));
  const [from, to] = compared;
  const choose = (id: string, isChosen: boolean): void => {
    const others = chosen.filter((other) => other !== id && checkpoints.some((one) => one.id === other));
    // Of three, the one that was chosen first is let go.
    setChosen(isChosen ? [...others, id].slice(-2) : others);
  };
  return (
    <div className="checkpoints-columns">
      <section aria-label="Timeline of checkpoints">
        <ol className="checkpoints-line">
          {[...checkpoints]
            .reverse()
            .slice(0, shown)
            .map((checkpoint) => (
              <CheckpointRow
                key={checkpoint.id}
                sessionId={sessionId}
                checkpoint={checkpoint}
                place={placeOf(checkpoint)}
                chosen={chosen.includes(checkpoint.id)}
                hasPlace={hasPlace}
                onChoose={choose}
                onChanged={onChanged}
              />
            ))}
        </ol>
        {checkpoints.length > shown && (
          <button type="button" className="button" onClick={() => setShown(shown + 5 * PAGE)}>
            Show earlier checkpoints ({(checkpoints.length - shown).toLocaleString("en")} more)
          </button>
        )}
      </section>
      <section className="checkpoints-diff" aria-label="Difference between two checkpoints">
        {from === undefined || to === undefined ? (
          <p className="soft">
            {from === undefined ? "Choose two checkpoints" : "Choose one more checkpoint"} to see what is different.
          </p>
        ) : (
          <CheckpointDiffPanel key={`${from.id} ${to.id}`} sessionId={sessionId} from={from} to={to} />
        )}
      </section>
    </div>
  );
}
