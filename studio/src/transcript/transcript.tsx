import { type ReactNode, useEffect, useMemo, useRef } from "react";
import { OtherBranchNote } from "./rows/other-branch-note.tsx";
import type { Labels } from "./labels-of.ts";
import { RowView } from "./rows/row-view.tsx";
import { rowsOf } from "./rows/rows.ts";
import { useFollowEnd } from "./use-follow-end.ts";
import { useKeepScroll } from "./use-keep-scroll.ts";
import type { LoadedPath } from "./use-loaded-path.ts";
import { type LoadMore, useLoadMore } from "./use-load-more.ts";
import { NearContext, useNearWatch } from "./use-near.ts";
import { useSeek } from "./use-seek.ts";
import "./transcript.css";

/** How many of the last rows are rendered right away; more than fit on any screen. */
const EAGER_ROWS = 30;

/** The props of a transcript. */
export interface TranscriptProps {
  readonly sessionId: string;
  readonly path: LoadedPath;
  readonly labels: Labels;
  /** Whether settings and records are shown. */
  readonly records: boolean;
  /** The entry that the URL names. */
  readonly entryId: string | null;
  /** Whether nothing may change the session now. */
  readonly blocked: boolean;
  /** Grows when the user sends a message here; the view then scrolls to the end. */
  readonly starts: number;
  /** Rendered below the last turn. */
  readonly children: ReactNode;
}

/** The turns of the active path, scrolled to the end, with the live rounds below. */
export function Transcript(props: TranscriptProps): ReactNode {
  const { sessionId, path, labels, records, entryId, blocked, starts, children } = props;
  const { held, loadEnd } = path;
  const rows = useMemo(() => rowsOf(held?.entries ?? [], records), [held, records]);
  const list = useRef<HTMLOListElement>(null);
  const hasEnd = held?.newer === null;
  const { scroller, content, onScroll, atEnd, follow, goToEnd, stopFollowing } = useFollowEnd(hasEnd);
  const near = useNearWatch(scroller, list);
  const keepScroll = useKeepScroll(scroller, rows[0]?.id);
  const sought = useSeek(entryId, { path, rows }, stopFollowing);
  const more = useLoadMore(scroller, path, keepScroll, sought === "loading");
  const toEnd = (go: () => void): void => {
    go();
    // A failed request is repeated with the next click.
    if (!hasEnd) loadEnd().catch(() => {});
  };
  useEffect(() => {
    if (starts > 0) toEnd(follow);
  }, [starts, follow]);
  useEffect(() => {
    // Marking rows may change their sizes, which must not happen inside a ResizeObserver callback.
    const observer = new ResizeObserver(() => requestAnimationFrame(near.look));
    for (const { current } of [scroller, content]) if (current !== null) observer.observe(current);
    return () => observer.disconnect();
  }, [near, scroller, content]);
  return (
    <div className={blocked ? "transcript transcript-blocked" : "transcript"}>
      {sought === "elsewhere" && <OtherBranchNote sessionId={sessionId} entryId={entryId as string} />}
      <section
        className="transcript-scroller"
        ref={scroller}
        onScroll={() => {
          onScroll();
          near.look();
        }}
        onWheel={more.ask}
        onTouchMove={more.ask}
        onPointerDown={more.ask}
        onKeyDown={more.ask}
        aria-label="Transcript"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
        tabIndex={0}
      >
        <NearContext value={near.observe}>
          <div ref={content} className="transcript-content">
            <div ref={more.top} className="transcript-more small soft">
              {held?.older == null ? (
                rows.length > 0 && "This is the beginning of the session."
              ) : (
                <More of={more} what="earlier" />
              )}
            </div>
            {rows.length === 0 && <Empty hides={(held?.entries.length ?? 0) > 0} />}
            <ol ref={list} className="transcript-rows">
              {rows.map((row, index) => (
                <RowView
                  key={row.id}
                  row={row}
                  eager={index >= rows.length - EAGER_ROWS}
                  labels={labels}
                  asked={entryId !== null && row.ids.includes(entryId) ? entryId : null}
                />
              ))}
            </ol>
            <div ref={more.bottom} className="transcript-more small soft" hidden={hasEnd}>
              {!hasEnd && <More of={more} what="later" />}
            </div>
            {hasEnd && children}
          </div>
        </NearContext>
      </section>
      {!atEnd && (
        <button type="button" className="button transcript-to-end" onClick={() => toEnd(goToEnd)}>
          Go to the end
        </button>
      )}
    </div>
  );
}

/** A loading note, or a button that loads more turns. */
function More({ of, what }: { readonly of: LoadMore; readonly what: "earlier" | "later" }): ReactNode {
  if (!of.waits) return `Loading ${what} turns …`;
  return (
    <button type="button" className="button small" onClick={of.ask}>
      Load {what} turns
    </button>
  );
}

function Empty({ hides }: { readonly hides: boolean }): ReactNode {
  return (
    <p className="transcript-empty soft">
      There are no turns yet. {hides ? "Settings and records are hidden." : "Write a message below."}
    </p>
  );
}
