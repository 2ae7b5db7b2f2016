import type { Entry } from "../../../src/session/entry.ts";

/** The labels of a session, by entry. */
export type Labels = ReadonlyMap<string, string>;

/** The labels after some more entries; the same object where none of them says anything of a label. */
export function applyLabels(labels: Labels, entries: readonly Entry[]): Labels {
  const changes = entries.filter((entry) => entry.type === "label");
  if (changes.length === 0) return labels;
  const next = new Map(labels);
  for (const { targetId, label } of changes) {
    if (label === null) next.delete(targetId);
    else next.set(targetId, label);
  }
  return next;
}
