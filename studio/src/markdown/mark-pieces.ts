/** A piece of a text; marked if `own`. */
export interface MarkedPiece {
  readonly text: string;
  readonly own: boolean;
}

interface HtmlNode {
  readonly type: string;
  readonly value?: string;
  children?: HtmlNode[];
  readonly tagName?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly position?: { readonly start: { readonly offset?: number } };
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * A rehype plugin that marks the own pieces of a Markdown source in what is rendered from it. A text that does not stand
 * in the source as it is rendered, such as an escaped character, gets no mark.
 */
export function markPieces(pieces: readonly MarkedPiece[], className: string): () => (tree: HtmlNode) => void {
  const source = pieces.map(({ text }) => text).join("");
  const ranges: Range[] = [];
  let offset = 0;
  for (const { text, own } of pieces) {
    if (own) ranges.push({ from: offset, to: offset + text.length });
    offset += text.length;
  }
  return () => (tree) => {
    let cursor = 0;
    const walk = (node: HtmlNode): void => {
      if (node.children === undefined) return;
      node.children = node.children.flatMap((child) => {
        if (child.type !== "text" || child.value === undefined) {
          walk(child);
          return [child];
        }
        if (child.value.trim() === "") return [child];
        const at = source.indexOf(child.value, Math.max(cursor, child.position?.start.offset ?? 0));
        if (at < 0) return [child];
        cursor = at + child.value.length;
        return markedText(child.value, at, ranges, className);
      });
    };
    if (ranges.length > 0) walk(tree);
  };
}

/** The text of a range of the source, split at the ends of the marked ranges. */
function markedText(value: string, at: number, ranges: readonly Range[], className: string): HtmlNode[] {
  const nodes: HtmlNode[] = [];
  let shown = 0;
  const add = (to: number): void => {
    if (to > shown) nodes.push({ type: "text", value: value.slice(shown, to) });
    shown = Math.max(shown, to);
  };
  for (const range of ranges) {
    const [from, to] = [Math.max(range.from - at, 0), Math.min(range.to - at, value.length)];
    if (from >= to) continue;
    add(from);
    const children = [{ type: "text", value: value.slice(from, to) }];
    nodes.push({ type: "element", tagName: "mark", properties: { className: [className] }, children });
    shown = to;
  }
  add(value.length);
  return nodes;
}
