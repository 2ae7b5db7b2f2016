import { memo, type ReactNode, useRef, useState } from "react";
import type { Entry } from "../../../../src/session/log/entry.ts";
import { useMe } from "../../request/use-me.ts";
import { AnswerBody } from "./answer-body.tsx";
import { AnswerFacts } from "./answer-facts.tsx";
import { CallAnswer } from "./call-answer.tsx";
import { ContentView } from "../content/content-view.tsx";
import { NoteRow } from "./note-row.tsx";
import { RowActions } from "./row-actions.tsx";
import { type OpenForm, RowForms } from "./row-forms.tsx";
import { RowHead } from "./row-head.tsx";
import type { Row } from "./rows.ts";
import { textOf } from "../content/said.ts";
import { ToolResult } from "../content/tool-call-fold.tsx";
import { useNear } from "../use-near.ts";
import "./row-view.css";

const BEGINNING_CHARACTERS = 600;

/** What a row is drawn from. */
export interface RowViewProps {
  readonly row: Row;
  readonly label: string | undefined;
  /** Whether the address asks for this row. */
  readonly marked: boolean;
  /** Whether it is drawn as a whole at once; any other row is, when it comes near the view. */
  readonly eager: boolean;
}

/** One thing in the transcript; drawn again only when it shows something else. */
export const RowView: (props: RowViewProps) => ReactNode = memo(
  function RowView({ row, label, marked, eager }: RowViewProps): ReactNode {
    const element = useRef<HTMLLIElement>(null);
    const near = useNear(element, eager || marked);
    const classes = ["transcript-row", `transcript-row-${row.kind}`, marked ? "transcript-row-marked" : ""];
    return (
      <li
        ref={element}
        className={classes.join(" ")}
        id={`turn-${row.id}`}
        tabIndex={-1}
        aria-current={marked ? "true" : undefined}
      >
        {near ? <RowBody row={row} label={label} /> : beginningOf(row.entry)}
      </li>
    );
  },
  (a, b) => a.row.signature === b.row.signature && a.label === b.label && a.marked === b.marked && sameQuestion(a, b),
);

/** A row's text while nobody can see it: a long session would take seconds to draw, and a search in the page finds it. */
function beginningOf(entry: Entry): string {
  if (entry.type === "message") return textOf(entry.message.content).slice(0, BEGINNING_CHARACTERS);
  return "summary" in entry ? entry.summary.slice(0, BEGINNING_CHARACTERS) : "";
}

function sameQuestion({ row: a }: RowViewProps, { row: b }: RowViewProps): boolean {
  return a.kind !== "answer" || b.kind !== "answer" || a.question?.id === b.question?.id;
}

/** Who said something to the model: the caller, unless it is on record that it was someone else. */
function sayerOf(by: string | undefined, me: string | undefined): string {
  return by === undefined || by === me ? "You" : by;
}

function RowBody({ row, label }: Pick<RowViewProps, "row" | "label">): ReactNode {
  const [form, setForm] = useState<OpenForm>(null);
  const me = useMe()?.userId;
  if (row.kind === "summary" || row.kind === "custom" || row.kind === "note")
    return <NoteRow row={row} label={label} />;
  const { id, endId, entry } = row;
  const { content, agent } = entry.message;
  const shared = { id, endId, text: () => textOf(content), onForm: setForm };
  const forms = { form, id, endId, label, onClose: () => setForm(null) };
  if (row.kind === "turn") {
    const isUser = row.entry.message.role === "user";
    const turn = { parentId: entry.parentId, content: row.entry.message.content };
    return (
      <>
        <RowHead
          speaker={isUser ? "user" : "system"}
          name={isUser ? (agent ?? sayerOf(entry.by, me)) : "System"}
          timestamp={entry.timestamp}
          label={label}
        />
        {form === "edit" ? null : <ContentView content={content} />}
        <RowForms {...forms} turn={turn} />
        <RowActions {...shared} editable={isUser} />
      </>
    );
  }
  if (row.kind === "result") {
    const { message } = row.entry;
    return (
      <>
        <RowHead speaker="tool" name={message.name} timestamp={entry.timestamp} label={label} />
        <ToolResult message={message} />
        <RowForms {...forms} />
        <RowActions {...shared} />
      </>
    );
  }
  const { message } = row.entry;
  const { question, results } = row;
  const retry = question === null ? null : { parentId: question.parentId, input: question.message.content };
  return (
    <>
      <RowHead
        speaker="assistant"
        name={agent ?? "Assistant"}
        timestamp={entry.timestamp}
        label={label}
        facts={<AnswerFacts message={message} />}
      />
      <AnswerBody
        message={message}
        resultOf={(callId) => results.get(callId)?.message ?? null}
        answerOf={(callId) => (
          <CallAnswer callId={callId} after={entry.seq} before={results.get(callId)?.seq ?? null} />
        )}
      />
      <RowForms {...forms} />
      <RowActions {...shared} retry={retry} />
    </>
  );
}
