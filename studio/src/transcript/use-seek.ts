import { useEffect, useRef, useState } from "react";
import type { TreeView } from "skein/client";
import type { LoadedPath } from "./use-loaded-path.ts";
import type { Row } from "./rows/rows.ts";

/** How many entries before the one that is sought are loaded with it. */
const BEFORE_ENTRIES = 30;
/** Rows that were never drawn have only an estimated height, so that the way to one is found in a few steps. */
const STEPS = 6;

/** Where the row is that the address asks for: `elsewhere` is on another branch, or nowhere. */
export type Sought = "none" | "loading" | "here" | "elsewhere";

/** Loads what the address asks for, scrolls there and gives it the focus, once. */
export function useSeek(
  entryId: string | null,
  { path, tree, rows }: { readonly path: LoadedPath; readonly tree: TreeView | null; readonly rows: readonly Row[] },
  letGo: () => void,
): Sought {
  const arrived = useRef<string | null>(null);
  const [elsewhere, setElsewhere] = useState<string | null>(null);
  const { held, loadOlder } = path;
  const row = entryId === null ? undefined : rows.find(({ signature }) => signature.split(" ").includes(entryId));
  const rowId = row?.id ?? null;
  const first = held?.entries[0]?.id ?? null;
  const more = held !== null && held.older !== null;

  useEffect(() => {
    if (entryId === null || held === null || tree === null || rowId !== null || arrived.current === entryId) return;
    const index = tree.activePath.indexOf(entryId);
    if (index < 0) setElsewhere(entryId);
    // What does not come is sought again with the next page.
    else if (more) loadOlder(tree.activePath.length - index - held.entries.length + BEFORE_ENTRIES).catch(() => {});
  }, [tree, entryId, rowId, first, more]);

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
  if (rowId !== null) return "here";
  return elsewhere === entryId ? "elsewhere" : "loading";
}
