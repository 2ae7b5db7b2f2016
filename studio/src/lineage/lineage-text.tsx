import { type ReactNode, useId, useState } from "react";
import type { LineageView } from "skein/client";
import { CopyButton } from "../markdown/copy-button.tsx";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import { saveFile } from "../share/save-file.ts";

const FORMATS = [
  { value: "mermaid", name: "Mermaid", ending: "mmd" },
  { value: "dot", name: "DOT (Graphviz)", ending: "dot" },
  { value: "jsonl", name: "JSONL", ending: "jsonl" },
] as const;

type Format = (typeof FORMATS)[number];

/** The lineage as text, to copy or save. */
export function LineageText({
  sessionId,
  lineage,
}: {
  readonly sessionId: string;
  readonly lineage: LineageView;
}): ReactNode {
  const [format, setFormat] = useState<Format | null>(null);
  return (
    <section className="lineage-export" aria-label="Export the lineage">
      <h2>Export</h2>
      <p className="lineage-formats">
        {FORMATS.map((each) => (
          <button
            key={each.value}
            type="button"
            className="button"
            aria-pressed={format === each}
            onClick={() => setFormat(format === each ? null : each)}
          >
            {each.name}
          </button>
        ))}
      </p>
      {format !== null && <Text key={format.value} sessionId={sessionId} lineage={lineage} format={format} />}
    </section>
  );
}

function Text({
  sessionId,
  lineage,
  format,
}: {
  readonly sessionId: string;
  readonly lineage: LineageView;
  readonly format: Format;
}): ReactNode {
  const client = useClient();
  const field = useId();
  const revision = `${lineage.nodes.length}|${lineage.usage.totalTokens}|${lineage.cost}`;
  const requested = useRevised(`${sessionId}|${format.value}`, revision, (signal) =>
    client.sessions.lineageText(sessionId, format.value, { signal }),
  );
  return (
    <RequestBoundary requested={requested} what="the text">
      {(text) => (
        <>
          <label htmlFor={field} className="only-for-readers">
            The lineage as {format.name}
          </label>
          <textarea
            id={field}
            className="field lineage-text"
            readOnly
            rows={Math.min(16, text.split("\n", 16).length)}
            value={text}
            spellCheck={false}
          />
          <p className="lineage-formats">
            <CopyButton label="Copy" text={() => text} />
            <button
              type="button"
              className="button"
              onClick={() => saveFile(new Blob([text], { type: "text/plain" }), `lineage.${format.ending}`)}
            >
              Save as a file
            </button>
          </p>
        </>
      )}
    </RequestBoundary>
  );
}
