import { useEffect, useRef, useState } from "react";
import { ClientError } from "skein/client";
import type { LoadedPath } from "./use-loaded-path.ts";
import type { Row } from "./rows/rows.ts";

/** Rows that were never drawn have only an estimated height, so that the way to one is found in a few steps. */
const STEPS = 6;

/** Where the row is that the address asks for: `elsewhere` is on another branch, or nowhere. */
export type Sought = "none" | "loading" | "here" | "elsewhere";

/** Loads what the address asks for, scrolls there and gives it the focus, once. */
export function useSeek(
  entryId: string | null,
  { path, rows }: { readonly path: LoadedPath; readonly rows: readonly Row[] },
  letGo: () => void,
): Sought {
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
        // What does not come for another reason is sought again with the next page.
      },
    );
  }, [entryId, rowId, held === null, askedAt, loadAround]);

  useEffect(() => {
    if (entryId === null) arrived.current = null;
    if (entryId === null || rowId === null || arrived.current === entryId) return;
    arrived.current = entryId;
    setElsewhere(null);
    letGo();
    let frame = 0;
    const step = (left: number): void => {
      const element = document.getElementById(`turn-${rowId}`);
      element?.scrollIntoView({ block: "center" });
      if (left === STEPS) element?.focus({ preventScroll: true });
      if (left > 0) frame = requestAnimationFrame(() => step(left - 1));
    };
    step(STEPS);
    return () => cancelAnimationFrame(frame);
  }, [entryId, rowId, letGo]);

  if (entryId === null) return "none";
  if (rowId !== null || arrived.current === entryId) return "here";
  return elsewhere === entryId ? "elsewhere" : "loading";
}
