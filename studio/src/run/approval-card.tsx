import { type FormEvent, type ReactNode, useState } from "react";
import { type CallParts, callParts, shownText } from "../../../src/agent/approval-text.ts";
import { useInbox } from "../questions/use-inbox.ts";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { MAY_NOT, useMay } from "../request/use-me.ts";
import { formatTime } from "../transcript/content/format.ts";
import { answerQuestion, type Asked } from "./asked.ts";
import "./run.css";

/** Of what is written to a file, so much is shown; of a command, all of it. */
const CONTENT_CHARACTERS_SHOWN = 2000;

const QUESTIONS: Readonly<Record<CallParts["kind"], string>> = {
  command: "run this command?",
  program: "run this program?",
  content: "write this to",
  edit: "change",
  arguments: "run with this?",
};

/** Asks whether a call may run: what it would do, where, and what it could reach from there. */
export function ApprovalCard({
  sessionId,
  asked,
  agent = null,
}: {
  readonly sessionId: string;
  readonly asked: Asked;
  /** The agent of a group that wants to run it. */
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

function WhatItDoes({ asked, agent }: { readonly asked: Asked; readonly agent: string | null }): ReactNode {
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
          {isCut && "; the beginning is shown, the whole text is in the call above"}
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

/** Characters in the order that a shell reads them, whichever direction their script has. */
function CallText({ text }: { readonly text: string }): ReactNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
    <pre className="run-approval-text" dir="ltr" tabIndex={0}>
      {shownText(text)}
    </pre>
  );
}

/** When it was asked, and until when an answer counts; an event of a run that is at work says neither. */
function Since({ asked }: { readonly asked: Asked }): ReactNode {
  if (!("askedAt" in asked)) return null;
  const { askedAt, expiresAt } = asked;
  return (
    <p className="small soft">
      Asked <time dateTime={askedAt}>{formatTime(askedAt)}</time>
      {expiresAt !== undefined && (
        <>
          ; without an answer it counts as denied from <time dateTime={expiresAt}>{formatTime(expiresAt)}</time> on
        </>
      )}
      .
    </p>
  );
}

function Reach({ asked: { effects, reach } }: { readonly asked: Asked }): ReactNode {
  if (reach === null) return <p className="run-approval-reach">Nothing is known of what it can reach.</p>;
  return (
    <ul className="run-approval-reach" aria-label="What it can reach">
      <li>{reach.directory === null ? "not on this machine" : <code>in {shownText(reach.directory)}</code>}</li>
      {/* Tools for files stay in their directory, whatever commands can do. */}
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
