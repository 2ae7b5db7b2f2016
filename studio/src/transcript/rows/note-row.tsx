import { type ReactNode, useState } from "react";
import { bodyOf, type Entry, type EntryBody } from "../../../../src/session/log/entry.ts";
import { LongText } from "../../markdown/long-text.tsx";
import { Markdown } from "../../markdown/markdown.tsx";
import { visibleText } from "../../markdown/visible-text.ts";
import { ContentView } from "../content/content-view.tsx";
import { Fold } from "../content/fold.tsx";
import { formatCompact } from "../../sessions/list/amounts.ts";
import { RowActions } from "./row-actions.tsx";
import { type OpenForm, RowForms } from "./row-forms.tsx";
import { RowHead } from "./row-head.tsx";
import type { Row } from "./rows.ts";
import { textOf } from "../content/content-text.ts";

type OtherRow = Extract<Row, { kind: "summary" | "custom" | "note" }>;

/** A row without a speaker: a summary, a message of a program, or a change of a setting. */
export function NoteRow({ row, label }: { readonly row: OtherRow; readonly label: string | undefined }): ReactNode {
  const [form, setForm] = useState<OpenForm>(null);
  if (row.kind === "note") return <Note entry={row.entry} />;
  const { id, endId, entry } = row;
  const text = entry.type === "custom_message" ? textOf(entry.content) : entry.summary;
  return (
    <>
      <RowHead
        speaker="note"
        name={titleOf(entry)}
        timestamp={entry.timestamp}
        label={label}
        facts={entry.type === "compaction" && <span>{formatCompact(entry.tokensBefore)} tokens before</span>}
      />
      {entry.type === "custom_message" ? (
        <ContentView content={entry.content} />
      ) : (
        <Fold title="Summary" open={entry.summary.length < 600}>
          <Markdown text={entry.summary} />
        </Fold>
      )}
      <RowForms form={form} labelId={id} endId={endId} label={label} onClose={() => setForm(null)} />
      <RowActions id={id} endId={endId} text={() => text} onForm={setForm} />
    </>
  );
}

function titleOf(entry: Extract<OtherRow, { kind: "summary" | "custom" }>["entry"]): string {
  if (entry.type === "compaction") return "Compaction: the model gets a summary of the turns above";
  if (entry.type === "branch_summary") return "Summary of another branch";
  return `Message of ${entry.customType}${entry.display ? "" : " (for the model only)"}`;
}

function Note({ entry }: { readonly entry: Entry }): ReactNode {
  const [said, details] = noteOf(entry);
  const text = visibleText(said.slice(0, 400));
  if (details === null) return <p className="transcript-note small soft">{text}</p>;
  return (
    <Fold title={<span className="small soft">{text}</span>} className="transcript-note">
      <LongText text={JSON.stringify(details, null, 2)} first={4000} />
    </Fold>
  );
}

function noteOf(entry: Entry): readonly [string, unknown] {
  switch (entry.type) {
    case "model_change":
      return [`The model is ${entry.provider}/${entry.modelId} from here on.`, null];
    case "thinking_level_change":
      return [`The thinking level is ${entry.thinkingLevel} from here on.`, null];
    case "variables": {
      const { type: _type, ...changes } = bodyOf(entry) as Extract<EntryBody, { type: "variables" }>;
      return ["Settings changed here.", changes];
    }
    case "setup": {
      const { type: _type, agent, ...changes } = bodyOf(entry) as Extract<EntryBody, { type: "setup" }>;
      return [`Requests of ${agent} are sent with this from here on.`, changes];
    }
    case "custom":
      return [`A record of ${entry.customType}.`, entry.data ?? null];
    case "erased":
      return [`This entry was removed${entry.reason === undefined ? "." : `: ${entry.reason}`}`, null];
    case "lost":
      return [`An entry was lost: ${entry.reason}`, null];
    default:
      return [`An entry of the type ${(entry as { type: string }).type}.`, entry];
  }
}
