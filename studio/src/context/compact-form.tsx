import { type FormEvent, type ReactNode, useState } from "react";
import type { CompactionPreview, ModelInfo, SessionView } from "skein/client";
import { useAction } from "../request/use-action.ts";
import { MAY_NOT, useMay } from "../request/use-me.ts";
import { useClient } from "../request/use-client.ts";

/** The preview of a compaction, for a version of the session. */
export interface Preview extends CompactionPreview {
  readonly version: number;
  /** How many tokens are kept; undefined for the server's default. */
  readonly keepRecentTokens: number | undefined;
}

interface CompactFormProps {
  readonly session: SessionView;
  readonly models: readonly ModelInfo[];
  readonly preview: Preview | null;
  /** The tokens of the messages that would be summarized; null if unknown. */
  readonly droppedTokens: number | null;
  /** Whether a preview exists that is no longer valid. */
  readonly outdated: boolean;
  readonly onPreview: (preview: Preview | null) => void;
  readonly onChanged: () => void;
}

/** Compacts a session, with a preview first. */
export function CompactForm(props: CompactFormProps): ReactNode {
  const { session, models, preview, droppedTokens, outdated, onPreview, onChanged } = props;
  const client = useClient();
  const may = useMay();
  const [keep, setKeep] = useState("");
  const [model, setModel] = useState("");
  const [instructions, setInstructions] = useState("");
  const [notice, setNotice] = useState<string | null>(null);
  const { id } = session.header;
  const keepRecentTokens = keep.trim() === "" ? undefined : Number(keep);
  const valid = keepRecentTokens === undefined || (Number.isSafeInteger(keepRecentTokens) && keepRecentTokens >= 0);
  const kept = keepRecentTokens === undefined ? {} : { keepRecentTokens };
  const look = useAction(async () => {
    setNotice(null);
    const found = await client.sessions.previewCompaction(id, kept);
    onPreview({ ...found, version: session.version, keepRecentTokens });
  });
  const compact = useAction(async () => {
    const said = instructions.trim();
    const made = await client.sessions.compact(id, {
      ...kept,
      ...(model === "" ? {} : { model }),
      ...(said === "" ? {} : { instructions: said }),
    });
    setNotice(made === null ? "There was nothing to compact." : "The context is compacted.");
    onChanged();
  });
  const ready = preview !== null && preview.plan !== null && preview.keepRecentTokens === keepRecentTokens;
  const busy = look.busy || compact.busy;
  const error = look.error ?? compact.error;
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (!busy && valid) void look.run();
  };
  return (
    <section className="context-card" aria-label="Compact">
      <h3>Compact now</h3>
      <p className="small soft">Replaces older messages by a summary that a model writes.</p>
      <form className="context-form" onSubmit={send}>
        <label className="small">
          Recent tokens to keep, about
          <input
            className="field"
            inputMode="numeric"
            placeholder="default"
            value={keep}
            aria-invalid={!valid}
            onChange={(event) => setKeep(event.target.value)}
          />
        </label>
        {!valid && <p className="context-problem small">Enter a number of tokens, such as 4000.</p>}
        <label className="small">
          Model that writes the summary
          <select className="field" value={model} onChange={(event) => setModel(event.target.value)}>
            <option value="">The session's model</option>
            {models.map((one) => (
              <option key={one.id} value={one.id}>
                {one.id}
              </option>
            ))}
          </select>
        </label>
        <label className="small">
          Instructions (optional)
          <textarea
            className="field"
            rows={2}
            placeholder="What the summary must keep"
            value={instructions}
            onChange={(event) => setInstructions(event.target.value)}
          />
        </label>
        <div className="context-buttons">
          <button type="submit" className="button small" disabled={busy || !valid}>
            Preview
          </button>
          <button
            type="button"
            className={`button small ${ready ? "button-primary" : ""}`}
            disabled={busy || !ready || !may.run}
            onClick={() => void compact.run()}
          >
            {compact.busy ? "Compacting …" : "Compact"}
          </button>
        </div>
      </form>
      <div aria-live="polite" className="small">
        {!may.run && <p className="soft">{MAY_NOT.run}</p>}
        {error !== null && <p className="context-problem">{error.message}</p>}
        {notice !== null && <p>{notice}</p>}
        {outdated && (
          <p className="soft">The session has changed since the preview. Preview again before you compact.</p>
        )}
        {preview !== null && <Plan preview={preview} droppedTokens={droppedTokens} />}
      </div>
    </section>
  );
}

function Plan({
  preview: { plan },
  droppedTokens,
}: Pick<CompactFormProps, "droppedTokens"> & { readonly preview: Preview }): ReactNode {
  if (plan === null) {
    return <p>There is nothing to compact: all messages are recent. Keep fewer tokens to compact anyway.</p>;
  }
  const count = (value: number, one: string, many: string): string =>
    `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
  return (
    <p>
      Of {count(plan.tokensBefore, "token", "tokens")}, a summary would replace{" "}
      <strong>{count(plan.droppedEntries, "entry", "entries")}</strong> and keep{" "}
      <strong>{count(plan.keptEntries, "entry", "entries")}</strong> unchanged.
      {droppedTokens !== null &&
        ` About ${count(droppedTokens, "token", "tokens")} would be replaced, in the messages marked in the list.`}
    </p>
  );
}
