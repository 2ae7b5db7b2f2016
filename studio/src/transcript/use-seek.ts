import { useEffect, useRef, useState } from "react";
import { ClientError } from "skein/client";
import type { LoadedPath } from "./use-loaded-path.ts";
import type { Row } from "./rows/rows.ts";

/** Rows that were never rendered have an estimated height, so several steps are needed to scroll to a row. */
const STEPS = 6;

/** The state of the row that the URL names: `elsewhere` is on another branch, or does not exist. */
export type SeekState = "none" | "loading" | "here" | "elsewhere";

/** Loads the entry that the URL names, scrolls to it and focuses it, once. */
export function useSeek(
  entryId: string | null,
  { path, rows }: { readonly path: LoadedPath; readonly rows: readonly Row[] },
  stopFollowing: () => void,
): SeekState {
  const arrived = useRef<string | null>(null);
  const [elsewhere, setElsewhere] = useState<string | null>(null);
  const { held, askedAt, loadAround } = path;
  const rowId = entryId === null ? null : (rows.find(({ ids }) => ids.includes(entryId))?.id ?? null);

  useEffect(() => {
    if (entryId === null || held === null || rowId !== null || arrived.current === entryId) return;
    loadAround(entryId).then(
      (found) => setElsewhere(found ? null : entryId),
      (error) => {
        if (error instanceof ClientError && error.code === "UNKNOWN_ENTRY") setElsewhere(entryId);
        // After another failure, it is tried again with the next page.
      },
    );
  }, [entryId, rowId, held === null, askedAt, loadAround]);

  useEffect(() => {
    if (entryId === null) arrived.current = null;
    if (entryId === null || rowId === null || arrived.current === entryId) return;
    arrived.current = entryId;
    setElsewhere(null);
    stopFollowing();
    let frame = 0;
    const step = (left: number): void => {
      const element = document.getElementById(`turn-${rowId}`);
      // Of an answer with many rounds, the one with the entry.
      const round = element?.querySelector(`[data-entries~="${CSS.escape(entryId)}"]`) ?? element;
      round?.scrollIntoView({ block: "center" });
      if (left === STEPS) element?.focus({ preventScroll: true });
      if (left > 0) frame = requestAnimationFrame(() => step(left - 1));
    };
    step(STEPS);
    return () => cancelAnimationFrame(frame);
  }, [entryId, rowId, stopFollowing]);

  if (entryId === null) return "none";
  if (rowId !== null || arrived.current === entryId) return "here";
  return elsewhere === entryId ? "elsewhere" : "loading";
}
