import { memo, type ReactNode, useState } from "react";
import type { ContextPartView, ContextView } from "skein/client";
import { LongText } from "../markdown/long-text.tsx";
import { messageText } from "../request/message-text.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { addressOf } from "../shell/route.ts";
import { percent, wholeOf } from "./context-share.ts";
import { EditPart } from "./edit-part.tsx";
import "./context-parts.css";

/** How many messages are shown at first; more are shown in larger steps. */
const PAGE = 200;
const LINE_CHARACTERS = 300;
/** How many messages are shown automatically to reach the position of the cut. */
const CUT_MAX = 2_000;

/** The messages of a context in order, each with its tokens. The first `dropped` would be summarized. */
export function ContextParts({
  sessionId,
  context,
  dropped,
  onChanged,
}: {
  readonly sessionId: string;
  readonly context: ContextView;
  readonly dropped: number;
  readonly onChanged: () => void;
}): ReactNode {
  const [shown, setShown] = useState(PAGE);
  const { parts, compaction } = context;
  const total = wholeOf(context);
  const cut = dropped > 0 && parts.length - dropped < CUT_MAX ? dropped - 1 : parts.length;
  const first = Math.max(0, Math.min(parts.length - shown, cut));
  if (parts.length === 0) {
    return <p className="context-none soft">No messages yet: the model would get only the next message.</p>;
  }
  return (
    <section aria-label="Messages of the context">
      {first > 0 && (
        <button type="button" className="button small" onClick={() => setShown(shown + 5 * PAGE)}>
          Show earlier messages ({first.toLocaleString("en")} more)
        </button>
      )}
      <ol className="context-parts" start={first + 1}>
        {parts.slice(first).map((part, index) => (
          <Part
            // A placeholder for a missing result has no entry, and an entry can produce several messages.
            key={`${part.entryId} ${first + index}`}
            sessionId={sessionId}
            part={part}
            number={first + index + 1}
            share={total === 0 ? 0 : part.tokens / total}
            summary={part.entryId !== null && part.entryId === compaction?.entryId}
            dropped={first + index < dropped}
            lastDropped={first + index === dropped - 1}
            onChanged={onChanged}
          />
        ))}
      </ol>
    </section>
  );
}

interface PartProps {
  readonly sessionId: string;
  readonly part: ContextPartView;
  readonly number: number;
  readonly share: number;
  readonly summary: boolean;
  readonly dropped: boolean;
  readonly lastDropped: boolean;
  readonly onChanged: () => void;
}

const Part = memo(function Part(props: PartProps): ReactNode {
  const { sessionId, part, number, share, summary, dropped, lastDropped, onChanged } = props;
  const [open, setOpen] = useState(false);
  const { message, tokens, entryId } = part;
  const text = messageText(message);
  const who = message.role === "tool" ? `tool ${visibleText(message.name)}` : message.role;
  return (
    <li className={`context-part${dropped ? " context-part-dropped" : ""}`}>
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span className={`context-dot context-${message.role}`} aria-hidden="true" />
          <span className="context-part-who">
            {number}. {who}
            {message.agent !== undefined && message.agent !== message.role && ` (${visibleText(message.agent)})`}
          </span>
          {part.edit !== undefined && <span className="tag context-tag">edited</span>}
          {summary && <span className="tag context-tag">summary of earlier messages</span>}
          {dropped && <span className="tag context-tag">would be summarized</span>}
          <span className="context-part-tokens small">
            {tokens.toLocaleString("en")}
            <span className="only-for-readers"> tokens,</span> <span className="soft">{percent(share)}</span>
          </span>
          <bdi className="context-part-line soft">{open ? "" : visibleText(text.slice(0, LINE_CHARACTERS))}</bdi>
          <span className="context-bar" aria-hidden="true">
            <span className={`context-${message.role}`} style={{ width: `${share * 100}%` }} />
          </span>
        </summary>
        {open && (
          <div className="context-part-text">
            <LongText text={text === "" ? "(no text)" : text} />
            {entryId === null ? (
              <p className="small soft">Placeholder for a missing result; it is not an entry.</p>
            ) : (
              <>
                <a
                  className="small"
                  href={addressOf({ page: "session", id: sessionId, view: "talk", options: { entry: entryId } })}
                >
                  Show in transcript
                </a>
                {!summary && <EditPart sessionId={sessionId} part={{ ...part, entryId }} onChanged={onChanged} />}
              </>
            )}
          </div>
        )}
      </details>
      {lastDropped && <p className="context-cut small">Kept unchanged from here on</p>}
    </li>
  );
});
