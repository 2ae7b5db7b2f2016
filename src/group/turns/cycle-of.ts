import type { GroupMember } from "./turn-manager.ts";

/** How far a group has come in giving everyone a go. */
export interface Cycle {
  /** How often everyone has had a go. */
  readonly completed: number;
  /** Who had one since then. */
  readonly spoken: ReadonlySet<string>;
}

/** The cycle that the moves of a group lead to. Moves of agents that are not in it any more do not count. */
export function cycleOf(agents: readonly GroupMember[], moves: readonly string[]): Cycle {
  const names = new Set(agents.map(({ name }) => name));
  let completed = 0;
  const spoken = new Set<string>();
  for (const name of moves) {
    if (!names.has(name)) continue;
    spoken.add(name);
    if (spoken.size < names.size) continue;
    completed += 1;
    spoken.clear();
  }
  return { completed, spoken };
}
