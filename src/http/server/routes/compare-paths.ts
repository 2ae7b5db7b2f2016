import type { Entry } from "../../../session/log/entry.ts";
import { EMPTY_PATH, type PathSummary } from "../../../session/log/fold.ts";
import type { SessionStore } from "../../../session/store.ts";
import { walkUp } from "../../../tree/path-reader.ts";
import type { ComparedPath, ComparisonView } from "../../tree-wire.ts";
import { LastPassed } from "./answer-bytes.ts";

/** A path to compare: where it ends, and what it adds up to. */
export interface PathEnd {
  readonly sessionId: string;
  readonly leafId: string | null;
  readonly path: PathSummary;
}

interface Climb {
  readonly steps: AsyncIterator<Entry, unknown>;
  /** How many nodes there are down to `at`. */
  depth: number;
  at: Entry | null;
  /** The nodes that were passed last. */
  readonly passed: LastPassed;
}

/**
 * Finds where two paths part, in one session or in two: a fork keeps the ids of what it took over. Walks up both to there,
 * and keeps no more on the way than the first nodes of each, at most so many.
 */
export async function comparePaths(
  store: SessionStore,
  left: PathEnd,
  right: PathEnd,
  limit: number,
): Promise<ComparisonView> {
  const [a, b] = [climbFrom(store, left, limit), climbFrom(store, right, limit)];
  const up = async (climb: Climb): Promise<void> => {
    if (climb.at !== null) climb.passed.add(climb.at);
    const { value, done } = await climb.steps.next();
    climb.at = done === true ? null : (value as Entry);
    climb.depth -= 1;
  };
  await up(a);
  await up(b);
  while (a.at?.id !== b.at?.id) {
    const [ofA, ofB] = [a.depth, b.depth];
    if (ofA >= ofB) await up(a);
    if (ofB >= ofA) await up(b);
  }
  const ancestorId = a.at?.id ?? null;
  const common = (ancestorId === null ? null : await store.path(left.sessionId, ancestorId)) ?? EMPTY_PATH;
  const sideOf = async ({ sessionId, path }: PathEnd, { passed }: Climb): Promise<ComparedPath> => ({
    ...passed.page(),
    turns: path.turnCount - common.turnCount,
    settings: await store.settings(sessionId, path),
  });
  return { ancestorId, commonTurns: common.turnCount, left: await sideOf(left, a), right: await sideOf(right, b) };
}

function climbFrom(store: SessionStore, { sessionId, leafId, path }: PathEnd, limit: number): Climb {
  const steps = leafId === null ? nothing() : walkUp(store, sessionId, leafId);
  return { steps, depth: path.depth + 1, at: null, passed: new LastPassed(limit) };
}

async function* nothing(): AsyncGenerator<Entry, void, undefined> {}
