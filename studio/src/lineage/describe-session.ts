import type { LineageNodeView, LineageView } from "skein/client";

type Kind = NonNullable<LineageNodeView["lineage"]>["kind"];

const KINDS: Readonly<Record<Kind, string>> = {
  unknown: "session",
  leaf_user: "user",
  leaf_system: "system",
  op_fork: "fork",
  op_detach: "detached",
  op_merge: "merge",
  op_session_loop: "loop",
  op_session_compress: "compress",
};

/** What a session was made by; what is not there has no kind. */
export function kindOf({ lineage }: LineageNodeView): string {
  if (lineage === null) return "missing";
  return KINDS[lineage.kind] ?? lineage.kind;
}

/** What a session is called in a lineage; forks often have the name of what they come from, so the id goes with it. */
export function titleOf({ name, id }: LineageNodeView): string {
  return name ?? `Session ${shortId(id)}`;
}

/** The end of an id, which tells sessions apart that were made at the same time. */
export function shortId(id: string): string {
  return id.length > 12 ? `…${id.slice(-8)}` : id;
}

/** What all sessions of a lineage spent together. */
export function totalOf({ nodes }: Pick<LineageView, "nodes">): { readonly tokens: number; readonly cost: number } {
  let [tokens, cost] = [0, 0];
  for (const node of nodes) {
    tokens += node.usage?.totalTokens ?? 0;
    cost += node.cost ?? 0;
  }
  return { tokens, cost };
}
