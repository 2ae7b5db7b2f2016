import { type ReactNode, useMemo } from "react";
import type { ToolCall, ToolMessage } from "../../../../src/session/message.ts";
import { LongText } from "../../markdown/long-text.tsx";
import { visibleText } from "../../markdown/visible-text.ts";
import { CallGlanceView } from "./call-glance-view.tsx";
import { glanceOf } from "./call-glance.ts";
import { ContentView } from "./content-view.tsx";
import { DiffView } from "./diff-view.tsx";
import { argumentsOf, fileEditOf } from "./file-edit.ts";
import { Fold } from "./fold.tsx";
import { partsOf, textOf } from "./content-text.ts";
import "./tool-call-fold.css";

const PREVIEW_CHARACTERS = 100;

/** The state of a call: written by the model, waiting for its turn, running, waiting for approval, done, or failed. */
export type CallState = "called" | "next" | "running" | "waiting" | "done" | "failed";

const STATES: Readonly<Record<CallState, string>> = {
  called: "no result",
  next: "…",
  running: "running …",
  waiting: "waits for approval",
  done: "done",
  failed: "failed",
};

/** A call: collapsed with its name, subject and result at a glance; complete when it is open. */
export function ToolCallFold({
  call,
  result,
  state: given,
  answer,
  children,
}: {
  readonly call: ToolCall;
  readonly result: ToolMessage | null;
  /** Its state; null if the result determines it. */
  readonly state: CallState | null;
  /** Who approved or denied it; shown when the call is open. */
  readonly answer?: ReactNode;
  readonly children?: ReactNode;
}): ReactNode {
  const state = given ?? (result?.isError === true ? "failed" : "done");
  const edit = fileEditOf(call);
  const glance = useMemo(
    () => glanceOf(call, result === null ? null : { text: textOf(result.content), failed: result.isError === true }),
    [call, result],
  );
  const title = (
    <>
      <code className="transcript-tool-name">{visibleText(call.name.slice(0, 120)) || "…"}</code>
      <span className="transcript-tool-about">{previewOf(call)}</span>
      <span className={`transcript-tool-state transcript-tool-${state}`}>{STATES[state]}</span>
    </>
  );
  return (
    <div className="transcript-tool">
      <Fold
        title={title}
        className="transcript-tool-fold"
        folded={glance !== null && <CallGlanceView glance={glance} />}
      >
        {edit !== null ? (
          <DiffView edit={edit} />
        ) : (
          <>
            <p className="soft small">Arguments</p>
            <LongText text={prettyOf(call.arguments)} first={4000} />
          </>
        )}
        {answer}
        {result !== null && <ToolResult message={result} />}
      </Fold>
      {children}
    </div>
  );
}

/** The result of a tool, as plain text: tools do not write Markdown. */
export function ToolResult({ message }: { readonly message: ToolMessage }): ReactNode {
  const others = partsOf(message.content).filter(({ type }) => type !== "text");
  const text = textOf(message.content);
  return (
    <div className={message.isError === true ? "transcript-result transcript-result-failed" : "transcript-result"}>
      <p className="soft small">{message.isError === true ? "Error" : "Result"}</p>
      {text === "" && others.length === 0 && <p className="soft">Nothing.</p>}
      {text !== "" && <LongText text={prettyOf(text)} first={4000} />}
      <ContentView content={others} />
    </div>
  );
}

function prettyOf(text: string): string {
  if (text.length > 200_000 || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The subject of a call, on one line. */
function previewOf(call: ToolCall): string {
  const given = argumentsOf({ arguments: call.arguments.slice(0, 100_000) });
  const first = given === null ? undefined : Object.values(given).find((value) => typeof value === "string");
  const text = typeof first === "string" ? first : call.arguments === "{}" ? "" : call.arguments;
  return visibleText(text.slice(0, PREVIEW_CHARACTERS).replace(/\s+/g, " "));
}
