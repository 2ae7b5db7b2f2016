import { memo, type ReactNode, useRef, useState } from "react";
import type { Entry } from "../../../../src/session/log/entry.ts";
import { useMe } from "../../request/use-me.ts";
import { AnswerFacts } from "./answer-facts.tsx";
import { AnswerRounds } from "./answer-rounds.tsx";
import { ContentView } from "../content/content-view.tsx";
import type { Labels } from "../labels-of.ts";
import { NoteRow } from "./note-row.tsx";
import { RowActions } from "./row-actions.tsx";
import { type OpenForm, RowForms } from "./row-forms.tsx";
import { RowHead } from "./row-head.tsx";
import type { Row } from "./rows.ts";
import { textOf } from "../content/content-text.ts";
import { SiblingSwitch } from "./sibling-switch.tsx";
import { spentOn } from "./spent.ts";
import { ToolResult } from "../content/tool-call-fold.tsx";
import { useNear } from "../use-near.ts";
import "./row-view.css";

const BEGINNING_CHARACTERS = 600;

/** The props of a row. */
export interface RowViewProps {
  readonly row: Row;
  readonly labels: Labels;
  /** The entry of the row that the URL names; null for another row. */
  readonly asked: string | null;
  /** Whether it is rendered completely right away; other rows are when they come near the viewport. */
  readonly eager: boolean;
}

/** A row of the transcript, memoized: rendered again only if its content changes. */
export const RowView: (props: RowViewProps) => ReactNode = memo(
  function RowView({ row, labels, asked, eager }: RowViewProps): ReactNode {
    const element = useRef<HTMLLIElement>(null);
    const marked = asked !== null;
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
        {near ? <RowBody row={row} labels={labels} asked={asked} /> : beginningOf(row.entry)}
      </li>
    );
  },
  (a, b) => sameRow(a.row, b.row) && a.asked === b.asked && sameLabel(a, b),
);

/**
 * The beginning of a row's text, for rows outside the viewport: rendering all would take seconds, and the browser's
 * search still finds it.
 */
function beginningOf(entry: Entry): string {
  if (entry.type === "message") return textOf(entry.message.content).slice(0, BEGINNING_CHARACTERS);
  return "summary" in entry ? entry.summary.slice(0, BEGINNING_CHARACTERS) : "";
}

/** Whether two rows show the same: entries never change, so equal ids are enough. */
function sameRow(a: Row, b: Row): boolean {
  if (a.id !== b.id || a.endId !== b.endId || a.ids.length !== b.ids.length) return false;
  return a.kind !== "answer" || b.kind !== "answer" || a.question?.id === b.question?.id;
}

/** The entry of a row that has a label, or would get one. */
function labelledIn({ row, labels }: Pick<RowViewProps, "row" | "labels">): string {
  return row.ids.find((id) => labels.has(id)) ?? row.id;
}

function sameLabel(a: RowViewProps, b: RowViewProps): boolean {
  const [one, other] = [labelledIn(a), labelledIn(b)];
  return one === other && a.labels.get(one) === b.labels.get(other);
}

/** The sender of a message: the recorded one, else the user. */
function senderOf(by: string | undefined, me: string | undefined): string {
  return by === undefined || by === me ? "You" : by;
}

function RowBody({ row, labels, asked }: Omit<RowViewProps, "eager">): ReactNode {
  const labelId = labelledIn({ row, labels });
  const label = labels.get(labelId);
  const [form, setForm] = useState<OpenForm>(null);
  const me = useMe()?.userId;
  if (row.kind === "summary" || row.kind === "custom" || row.kind === "note")
    return <NoteRow row={row} label={label} />;
  const { id, endId, entry } = row;
  const { content, agent } = entry.message;
  const shared = { id, endId, text: () => textOf(content), onForm: setForm };
  const forms = { form, labelId, endId, label, onClose: () => setForm(null) };
  if (row.kind === "turn") {
    const isUser = row.entry.message.role === "user";
    const turn = { parentId: entry.parentId, content: row.entry.message.content };
    return (
      <>
        <RowHead
          speaker={isUser ? "user" : "system"}
          name={isUser ? (agent ?? senderOf(entry.by, me)) : "System"}
          timestamp={entry.timestamp}
          label={label}
          siblings={<SiblingSwitch ids={row.ids} what="message" />}
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
  const { question, rounds } = row;
  const retry = question === null ? null : { parentId: question.parentId, input: question.message.content };
  return (
    <>
      <RowHead
        speaker="assistant"
        name={agent ?? "Assistant"}
        timestamp={entry.timestamp}
        label={label}
        facts={<AnswerFacts message={row.entry.message} spent={spentOn(rounds)} />}
        siblings={<SiblingSwitch ids={row.ids} what="answer" />}
      />
      <AnswerRounds rounds={rounds} asked={asked === row.id ? null : asked} />
      <RowForms {...forms} />
      <RowActions {...shared} retry={retry} />
    </>
  );
}
