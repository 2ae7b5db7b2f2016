import type { LineageNodeView, LineageView } from "skein/client";

/** The sessions of a lineage by their ids. */
export type SessionsById = ReadonlyMap<string, LineageNodeView>;

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

/** How a session was made; `missing` if it is not available. */
export function kindOf({ lineage }: LineageNodeView): string {
  if (lineage === null) return "missing";
  return KINDS[lineage.kind] ?? lineage.kind;
}

/** The title of a session in a lineage; that of a fork with an inherited name begins with its branch. */
export function titleOf({ name, branchName, lineage, id }: LineageNodeView, byId: SessionsById): string {
  const inherited = lineage?.parents.some((parent) => byId.get(parent)?.name === name) ?? false;
  if (branchName !== null && name !== null && inherited) return `${branchName} · ${name}`;
  return name ?? branchName ?? `Session ${shortId(id)}`;
}

/** The end of an id, which distinguishes sessions made at the same time. */
export function shortId(id: string): string {
  return id.length > 12 ? `…${id.slice(-8)}` : id;
}

/** The total tokens and cost of all sessions of a lineage. */
export function totalOf({ nodes }: Pick<LineageView, "nodes">): { readonly tokens: number; readonly cost: number } {
  let [tokens, cost] = [0, 0];
  for (const node of nodes) {
    tokens += node.usage?.totalTokens ?? 0;
    cost += node.cost ?? 0;
  }
  return { tokens, cost };
}
