import { type FormEvent, type ReactNode, useState } from "react";
import { type CallParts, callParts, shownText } from "../../../src/agent/approval-text.ts";
import { useInbox } from "../questions/use-inbox.ts";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { MAY_NOT, useMay } from "../request/use-me.ts";
import { formatTime } from "../transcript/content/format.ts";
import { answerQuestion, type RunQuestion } from "./run-question.ts";
import "./run.css";

/** How much of a text that a call would write to a file is shown. Commands are always shown whole. */
const CONTENT_CHARACTERS_SHOWN = 2000;

const QUESTIONS: Readonly<Record<CallParts["kind"], string>> = {
  command: "run this command?",
  program: "run this program?",
  content: "write this to",
  edit: "change",
  arguments: "run with this?",
};

/** Asks for approval of a call: what it would do, where, and what it could reach. */
export function ApprovalCard({
  sessionId,
  asked,
  agent = null,
}: {
  readonly sessionId: string;
  readonly asked: RunQuestion;
  /** The agent of a group that calls the tool. */
  readonly agent?: string | null;
}): ReactNode {
  const [text, setText] = useState("");
  const client = useClient();
  const may = useMay();
  const inbox = useInbox();
  const decide = useAction(async (approve: boolean) => {
    await answerQuestion(client, sessionId, asked.question, { approve, text: text.trim() });
    inbox.reload();
  });
  const deny = (event: FormEvent): void => {
    event.preventDefault();
    void decide.run(false);
  };
  return (
    <form className="run-approval" aria-label={`Approval of ${shownText(asked.name)}`} onSubmit={deny}>
      <WhatItDoes asked={asked} agent={agent} />
      <Reach asked={asked} />
      <Since asked={asked} />
      <div className="run-approval-choice">
        <button
          type="button"
          className="button button-primary"
          disabled={decide.busy || !may.approve}
          onClick={() => void decide.run(true)}
        >
          Approve
        </button>
        <input
          className="field"
          placeholder="Why, or why not (optional)"
          aria-label="Note, or reason for denying"
          maxLength={1000}
          value={text}
          disabled={!may.approve}
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit" className="button button-danger" disabled={decide.busy || !may.approve}>
          Deny
        </button>
      </div>
      {!may.approve && <p className="small soft">{MAY_NOT.approve}</p>}
      {decide.error !== null && <p role="alert">{decide.error.message}</p>}
    </form>
  );
}

function WhatItDoes({ asked, agent }: { readonly asked: RunQuestion; readonly agent: string | null }): ReactNode {
  const { kind, text, path, rest } = callParts(asked);
  const isCut = (kind === "content" || kind === "edit") && text.length > CONTENT_CHARACTERS_SHOWN;
  const lines = text.split("\n").length;
  return (
    <>
      <p className="run-approval-question">
        May <code>{shownText(asked.name)}</code>
        {agent !== null && <> of {shownText(agent)}</>} {QUESTIONS[kind]}
        {path !== null && (
          <>
            {" "}
            <code>{shownText(path)}</code>?
          </>
        )}
      </p>
      <CallText text={isCut ? `${text.slice(0, CONTENT_CHARACTERS_SHOWN)}…` : text} />
      {(lines > 1 || text.length > 200) && (
        <p className="soft small">
          {lines.toLocaleString("en")} {lines === 1 ? "line" : "lines"}, {text.length.toLocaleString("en")} characters
          {isCut && "; only the beginning is shown, the full text is in the call above"}
        </p>
      )}
      {rest !== null && (
        <>
          <p className="soft small">With</p>
          <CallText text={rest} />
        </>
      )}
    </>
  );
}

/** Always left to right, the order in which a shell reads the characters. */
function CallText({ text }: { readonly text: string }): ReactNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
    <pre className="run-approval-text" dir="ltr" tabIndex={0}>
      {shownText(text)}
    </pre>
  );
}

/** The times when it was asked and when it expires; events of an active run have neither. */
function Since({ asked }: { readonly asked: RunQuestion }): ReactNode {
  if (!("askedAt" in asked)) return null;
  const { askedAt, expiresAt } = asked;
  return (
    <p className="small soft">
      Asked <time dateTime={askedAt}>{formatTime(askedAt)}</time>
      {expiresAt !== undefined && (
        <>
          ; unanswered, it counts as denied from <time dateTime={expiresAt}>{formatTime(expiresAt)}</time> on
        </>
      )}
      .
    </p>
  );
}

function Reach({ asked: { effects, reach } }: { readonly asked: RunQuestion }): ReactNode {
  if (reach === null) return <p className="run-approval-reach">It is unknown what it can reach.</p>;
  return (
    <ul className="run-approval-reach" aria-label="What it can reach">
      <li>{reach.directory === null ? "not on this machine" : <code>in {shownText(reach.directory)}</code>}</li>
      {/* File tools stay in their directory, whatever commands can reach. */}
      {effects === "commands" && (
        <>
          <li className={reach.isolated ? "run-approval-good" : "run-approval-bad"}>
            {reach.isolated ? "isolated" : "not isolated"}
          </li>
          <li className={reach.network ? "run-approval-bad" : "run-approval-good"}>
            {reach.network ? "network" : "no network"}
          </li>
        </>
      )}
    </ul>
  );
}
