import type { ReactNode } from "react";
import type { NodeKind } from "./node-kind.ts";
import "./tree.css";

const SHAPES: Readonly<Record<NodeKind, string>> = {
  user: "M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13z",
  assistant: "M4 2h8a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2h-8a2 2 0 0 1-2-2v-8a2 2 0 0 1 2-2z",
  tool: "M8 1l7 7l-7 7l-7-7z",
  system: "M4.5 2h7l3.5 6l-3.5 6h-7l-3.5-6z",
  compaction: "M1.5 2h13l-4.5 6l4.5 6h-13l4.5-6z",
  summary: "M3 1.5h11l-3 4l3 4h-9v5h-2z",
  settings: "M8 4a4 4 0 1 1 0 8a4 4 0 1 1 0-8z",
  other: "M8 2.5l6.5 11h-13z",
};

/** The shape and colour of a kind of node. */
export function NodeGlyph({ kind }: { readonly kind: NodeKind }): ReactNode {
  return (
    <svg className={`tree-glyph tree-glyph-${kind}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={SHAPES[kind]} />
    </svg>
  );
}
