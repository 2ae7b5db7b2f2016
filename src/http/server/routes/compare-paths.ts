import type { Entry } from "../../../session/log/entry.ts";
import { EMPTY_PATH, type PathSummary } from "../../../session/log/fold.ts";
import type { SessionStore } from "../../../session/store.ts";
import { walkUp } from "../../../tree/path-reader.ts";
import type { ComparedPath, ComparisonView } from "../../tree-wire.ts";
import { PathWindow } from "./answer-bytes.ts";

/** One of two paths to compare: its end and its summary. */
export interface PathEnd {
  readonly sessionId: string;
  readonly leafId: string | null;
  readonly path: PathSummary;
}

interface Climb {
  readonly steps: AsyncIterator<Entry, unknown>;
  /** The depth of `at`. */
  depth: number;
  at: Entry | null;
  /** The last nodes on the way up. */
  readonly window: PathWindow;
}

/**
 * Finds the last common entry of two paths, in one session or in two: a fork keeps the ids of inherited entries. Walks up both
 * paths to that entry, and keeps only the first `limit` entries after it in memory.
 */
export async function comparePaths(
  store: SessionStore,
  left: PathEnd,
  right: PathEnd,
  limit: number,
): Promise<ComparisonView> {
  const [a, b] = [climbFrom(store, left, limit), climbFrom(store, right, limit)];
  const up = async (climb: Climb): Promise<void> => {
    if (climb.at !== null) climb.window.add(climb.at);
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
  const sideOf = async ({ sessionId, path }: PathEnd, { window }: Climb): Promise<ComparedPath> => ({
    ...window.page(),
    turns: path.turnCount - common.turnCount,
    settings: await store.settings(sessionId, path),
  });
  return { ancestorId, commonTurns: common.turnCount, left: await sideOf(left, a), right: await sideOf(right, b) };
}

function climbFrom(store: SessionStore, { sessionId, leafId, path }: PathEnd, limit: number): Climb {
  const steps = leafId === null ? noEntries() : walkUp(store, sessionId, leafId);
  return { steps, depth: path.depth + 1, at: null, window: new PathWindow(limit) };
}

async function* noEntries(): AsyncGenerator<Entry, void, undefined> {}
