import { type ReactNode, useEffect, useMemo, useRef } from "react";
import type { TreeView } from "skein/client";
import { Elsewhere } from "./rows/elsewhere.tsx";
import type { Labels } from "./labels-of.ts";
import { RowView } from "./rows/row-view.tsx";
import { rowsOf } from "./rows/rows.ts";
import { useFollowEnd } from "./use-follow-end.ts";
import { useKeepPlace } from "./use-keep-place.ts";
import type { LoadedPath } from "./use-loaded-path.ts";
import { NearContext, useNearWatch } from "./use-near.ts";
import { useSeek } from "./use-seek.ts";
import "./transcript.css";

const OLDER_ENTRIES = 150;
/** How many rows at the end are drawn at once; more than fit on any screen. */
const EAGER_ROWS = 30;
/** How far above the view older turns are loaded before someone gets there. */
const AHEAD = "2400px 0px 0px 0px";

/** What was said on the active path, its end first, with whatever is being said below it. */
export function Transcript({
  sessionId,
  path,
  tree,
  labels,
  entryId,
  blocked,
  starts,
  children,
}: {
  readonly sessionId: string;
  readonly path: LoadedPath;
  /** Null until it is there. */
  readonly tree: TreeView | null;
  readonly labels: Labels;
  /** The entry that the address asks for. */
  readonly entryId: string | null;
  /** Whether nothing may change the session now. */
  readonly blocked: boolean;
  /** Grows when someone here says something, who then wants to see what comes of it. */
  readonly starts: number;
  /** What is below the last turn. */
  readonly children: ReactNode;
}): ReactNode {
  const { held, loadOlder } = path;
  const rows = useMemo(() => rowsOf(held?.entries ?? []), [held]);
  const list = useRef<HTMLOListElement>(null);
  const { scroller, content, onScroll, atEnd, follow, goToEnd, letGo } = useFollowEnd();
  const near = useNearWatch(scroller, list);
  const keepPlace = useKeepPlace(scroller, rows[0]?.id);
  const sought = useSeek(entryId, { path, tree, rows }, letGo);
  useEffect(() => {
    if (starts > 0) follow();
  }, [starts, follow]);
  useEffect(() => {
    // Marking rows may change their sizes, which an observer of sizes must not do.
    const observer = new ResizeObserver(() => requestAnimationFrame(near.look));
    for (const { current } of [scroller, content]) if (current !== null) observer.observe(current);
    return () => observer.disconnect();
  }, [near, scroller, content]);
  const more = held !== null && held.older !== null;
  const top = useRef<HTMLDivElement>(null);
  const first = rows[0]?.id;
  useEffect(() => {
    const element = top.current;
    if (element === null || !more || sought === "loading") return;
    const observer = new IntersectionObserver(
      ([seen]) => {
        // A page that does not come is asked for again when someone gets here again.
        if (seen?.isIntersecting === true) loadOlder(OLDER_ENTRIES, keepPlace).catch(() => {});
      },
      { root: scroller.current, rootMargin: AHEAD },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [more, first, loadOlder, keepPlace, sought === "loading"]);
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
        aria-label="Transcript"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
        tabIndex={0}
      >
        <NearContext value={near.observe}>
          <div ref={content} className="transcript-content">
            <div ref={top} className="transcript-top small soft">
              {more ? "Loading earlier turns …" : rows.length > 0 ? "The session begins here." : null}
            </div>
            {rows.length === 0 && <Empty />}
            <ol ref={list} className="transcript-rows">
              {rows.map((row, index) => (
                <RowView
                  key={row.id}
                  row={row}
                  eager={index >= rows.length - EAGER_ROWS}
                  label={labels.get(row.id)}
                  marked={entryId !== null && row.signature.split(" ").includes(entryId)}
                />
              ))}
            </ol>
            {children}
          </div>
        </NearContext>
      </section>
      {!atEnd && (
        <button type="button" className="button transcript-to-end" onClick={goToEnd}>
          Go to the end
        </button>
      )}
    </div>
  );
}

function Empty(): ReactNode {
  return <p className="transcript-empty soft">Nothing was said here yet. Say something below.</p>;
}
