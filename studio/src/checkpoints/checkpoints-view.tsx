import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import type { TreeView } from "skein/client";
import type { Checkpoint } from "../../../src/session/store.ts";
import { Shown } from "../request/shown.tsx";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import type { SessionProps } from "../session/session-props.ts";
import { CheckpointDiffPanel } from "./checkpoint-diff.tsx";
import { placeFinder } from "./checkpoint-place.ts";
import { CheckpointRow } from "./checkpoint-row.tsx";
import "./checkpoints.css";

const PAGE = 100;

/** The checkpoints of a session. */
export function CheckpointsView({ session, live }: SessionProps): ReactNode {
  const client = useClient();
  const { id } = session.header;
  const loaded = useRevised(id, live.revision, async (signal) => {
    const [checkpoints, tree] = await Promise.all([
      client.checkpoints.list(id, { signal }),
      client.sessions.tree(id, { signal }),
    ]);
    return { checkpoints, tree };
  });
  return (
    <div className="checkpoints-view">
      <CreateForm sessionId={id} onCreated={loaded.reload} />
      <Shown requested={loaded} what="the checkpoints">
        {({ checkpoints, tree }) =>
          checkpoints.length === 0 ? (
            <p className="checkpoints-none soft">
              No checkpoints yet. One marks where the session stands, so that it can be compared and returned to.
            </p>
          ) : (
            <Timeline sessionId={id} checkpoints={checkpoints} tree={tree} onChanged={loaded.reload} />
          )
        }
      </Shown>
    </div>
  );
}

function CreateForm({
  sessionId,
  onCreated,
}: {
  readonly sessionId: string;
  readonly onCreated: () => void;
}): ReactNode {
  const client = useClient();
  const [note, setNote] = useState("");
  const create = useAction(async () => {
    const text = note.trim();
    await client.checkpoints.create(sessionId, text === "" ? {} : { metadata: { note: text } });
    setNote("");
    onCreated();
  });
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (!create.busy) void create.run();
  };
  return (
    <form className="checkpoints-create" aria-label="Create a checkpoint" onSubmit={send}>
      <label>
        <span className="small">Note for a checkpoint (optional)</span>
        <input
          className="field"
          placeholder="before the risky part"
          value={note}
          onChange={(event) => setNote(event.target.value)}
        />
      </label>
      <button type="submit" className="button button-primary" aria-disabled={create.busy}>
        Create a checkpoint
      </button>
      {create.error !== null && (
        <p role="alert" className="checkpoints-problem small">
          {create.error.message}
        </p>
      )}
    </form>
  );
}

interface TimelineProps {
  readonly sessionId: string;
  readonly checkpoints: readonly Checkpoint[];
  readonly tree: TreeView;
  readonly onChanged: () => void;
}

function Timeline({ sessionId, checkpoints, tree, onChanged }: TimelineProps): ReactNode {
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
