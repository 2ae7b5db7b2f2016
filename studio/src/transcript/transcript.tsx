import { type ReactNode, useEffect, useMemo, useRef } from "react";
import { Elsewhere } from "./rows/elsewhere.tsx";
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

/** How many rows at the end are drawn at once; more than fit on any screen. */
const EAGER_ROWS = 30;

/** What a transcript is drawn from. */
export interface TranscriptProps {
  readonly sessionId: string;
  readonly path: LoadedPath;
  readonly labels: Labels;
  /** Whether settings and records are shown, too. */
  readonly records: boolean;
  /** The entry that the address asks for. */
  readonly entryId: string | null;
  /** Whether nothing may change the session now. */
  readonly blocked: boolean;
  /** Grows when someone here says something, who then wants to see what comes of it. */
  readonly starts: number;
  /** What is below the last turn. */
  readonly children: ReactNode;
}

/** What was said on the active path, its end first, with whatever is being said below it. */
export function Transcript(props: TranscriptProps): ReactNode {
  const { sessionId, path, labels, records, entryId, blocked, starts, children } = props;
  const { held, loadEnd } = path;
  const rows = useMemo(() => rowsOf(held?.entries ?? [], records), [held, records]);
  const list = useRef<HTMLOListElement>(null);
  const hasEnd = held?.newer === null;
  const { scroller, content, onScroll, atEnd, follow, goToEnd, letGo } = useFollowEnd(hasEnd);
  const near = useNearWatch(scroller, list);
  const keepScroll = useKeepScroll(scroller, rows[0]?.id);
  const sought = useSeek(entryId, { path, rows }, letGo);
  const more = useLoadMore(scroller, path, keepScroll, sought === "loading");
  const toEnd = (go: () => void): void => {
    go();
    // What does not come is asked for again with the next click.
    if (!hasEnd) loadEnd().catch(() => {});
  };
  useEffect(() => {
    if (starts > 0) toEnd(follow);
  }, [starts, follow]);
  useEffect(() => {
    // Marking rows may change their sizes, which an observer of sizes must not do.
    const observer = new ResizeObserver(() => requestAnimationFrame(near.look));
    for (const { current } of [scroller, content]) if (current !== null) observer.observe(current);
    return () => observer.disconnect();
  }, [near, scroller, content]);
  return (
    <div className={blocked ? "transcript transcript-blocked" : "transcript"}>
      {sought === "elsewhere" && <Elsewhere sessionId={sessionId} entryId={entryId as string} />}
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
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
        tabIndex={0}
      >
        <NearContext value={near.observe}>
          <div ref={content} className="transcript-content">
            <div ref={more.top} className="transcript-more small soft">
              {held?.older == null ? rows.length > 0 && "The session begins here." : <More of={more} what="earlier" />}
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

/** Says that more turns come, or asks whether they are to. */
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
      Nothing was said here yet. {hides ? "Settings and records are not shown." : "Say something below."}
    </p>
  );
}
