import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import type { SessionRow as Row } from "./read-sessions.ts";
import { SessionRow } from "./session-row.tsx";
import "./session-rows.css";

const ROW_HEIGHT_PX = 58;
const MATCH_HEIGHT_PX = 44;

/** The rows of the list, virtualized: only visible ones are rendered. */
export function SessionRows({
  rows,
  search,
  selectedId,
  busy,
  onRestore,
  children,
}: {
  readonly rows: readonly Row[];
  readonly search: string;
  readonly selectedId: string | null;
  readonly busy: boolean;
  readonly onRestore: ((id: string) => void) | null;
  /** Rendered after the last row. */
  readonly children?: ReactNode;
}): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const [activeId, setActiveId] = useState<string | null>(null);
  const indexOf = (id: string | null): number => rows.findIndex(({ session }) => session.header.id === id);
  const active = Math.max(indexOf(activeId) < 0 ? indexOf(selectedId) : indexOf(activeId), 0);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => ROW_HEIGHT_PX + Math.min(rows[index]?.matches.length ?? 0, 3) * MATCH_HEIGHT_PX,
    getItemKey: (index) => rows[index]?.session.header.id ?? index,
    // The row with the tab stop must be rendered, wherever the list is scrolled to.
    rangeExtractor: (range) => [...new Set([...defaultRangeExtractor(range), active])].sort((a, b) => a - b),
    overscan: 8,
  });
  const toFocus = useRef<number | null>(null);
  const focusPending = (): void => {
    const row = scroller.current?.querySelector<HTMLElement>(`[data-index="${toFocus.current}"] > .sessions-row`);
    if (toFocus.current === null || row == null) return;
    toFocus.current = null;
    row.focus({ preventScroll: true });
  };
  useEffect(focusPending);
  const move = (event: KeyboardEvent): void => {
    const last = rows.length - 1;
    const targets: Readonly<Record<string, number>> = {
      ArrowDown: Math.min(active + 1, last),
      ArrowUp: Math.max(active - 1, 0),
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    toFocus.current = target;
    virtual.scrollToIndex(target);
    setActiveId(rows[target]?.session.header.id ?? null);
    focusPending();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the links inside have the focus; this only moves the focus between them.
    <div ref={scroller} className="sessions-scroller" aria-busy={busy} onKeyDown={move}>
      <ul aria-label="Sessions" className="sessions-rows" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start, key }) => {
          const row = rows[index];
          if (row === undefined) return null;
          const { id } = row.session.header;
          return (
            <li
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              aria-setsize={rows.length}
              aria-posinset={index + 1}
              className="sessions-item"
              style={{ transform: `translateY(${start}px)` }}
              onFocus={() => setActiveId(id)}
            >
              <SessionRow
                row={row}
                search={search}
                selected={id === selectedId}
                tabbable={index === active}
                onRestore={onRestore}
              />
            </li>
          );
        })}
      </ul>
      {children}
    </div>
  );
}
