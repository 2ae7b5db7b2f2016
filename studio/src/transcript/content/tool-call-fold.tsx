import { type ReactNode, useMemo } from "react";
import type { ToolCall, ToolMessage } from "../../../../src/session/message.ts";
import { LongText } from "../../markdown/long-text.tsx";
import { visibleText } from "../../markdown/visible-text.ts";
import { CallOutputView } from "./call-output-view.tsx";
import { outputOf } from "./call-output.ts";
import { ContentView } from "./content-view.tsx";
import { argumentsOf } from "./file-edit.ts";
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

/** A call: folded with its name, subject and the beginning of its output; complete when it is open. */
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
  const output = useMemo(
    () => outputOf(call, result === null ? null : { text: textOf(result.content), failed: result.isError === true }),
    [call, result],
  );
  const media = result === null ? [] : partsOf(result.content).filter(({ type }) => type !== "text");
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
        folded={output !== null && <CallOutputView output={output} folded />}
      >
        {output === null && result !== null && media.length === 0 && <p className="soft small">The result is empty.</p>}
        {output !== null && <CallOutputView output={output} folded={false} />}
        <ContentView content={media} />
        {answer}
        <Fold title={<span className="small soft">As recorded</span>}>
          <p className="soft small">Arguments</p>
          <LongText text={prettyOf(call.arguments)} first={4000} />
          {result !== null && (
            <>
              <p className="soft small">Result</p>
              <LongText text={prettyOf(textOf(result.content))} first={4000} />
            </>
          )}
        </Fold>
      </Fold>
      {children}
    </div>
  );
}

/** The result of a tool whose call is not shown. */
export function ToolResult({ message }: { readonly message: ToolMessage }): ReactNode {
  const others = partsOf(message.content).filter(({ type }) => type !== "text");
  const call = { name: message.name, arguments: "{}" };
  const output = outputOf(call, { text: textOf(message.content), failed: message.isError === true });
  return (
    <>
      {output === null && others.length === 0 && <p className="soft">The result is empty.</p>}
      {output !== null && <CallOutputView output={output} folded={false} />}
      <ContentView content={others} />
    </>
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
