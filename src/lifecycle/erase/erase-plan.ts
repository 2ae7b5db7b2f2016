import { createHash } from "node:crypto";
import type { StoreEraser } from "../../session/store.ts";
import type { EraseTarget, NotCovered } from "./erase-report.ts";

/** A session to be removed. */
export interface PlannedRemoval {
  readonly id: string;
  readonly entries: number;
  readonly checkpoints: number;
  readonly snapshots: number;
}

/** A session of another user with entries to be erased. */
export interface PlannedCleaning {
  readonly id: string;
  /** Whether it is deleted; it is undeleted for the erasure, and deleted again. */
  readonly deleted: boolean;
  readonly entryIds: readonly string[];
  /** Checkpoints whose metadata is erased; absent in plans of earlier versions. */
  readonly checkpointIds?: readonly string[];
}

/** Entries of a removed session that a fork of another user keeps. */
export interface PlannedKeeping {
  readonly sessionId: string;
  readonly forkId: string;
  readonly entryIds: readonly string[];
}

/** The plan of an erasure. It is stored before anything is erased, and contains only ids, no words and no user names. */
export interface ErasePlan {
  readonly at: string;
  readonly forks: "keep" | "erase";
  readonly removals: readonly PlannedRemoval[];
  readonly cleanings: readonly PlannedCleaning[];
  readonly kept: readonly PlannedKeeping[];
  readonly notCovered: readonly NotCovered[];
  readonly done: boolean;
}

/** Reads the stored plan of an erasure; null if there is none. */
export async function readPlan(eraser: StoreEraser, target: EraseTarget): Promise<ErasePlan | null> {
  const key = erasureKey(target);
  const text = (await eraser.readMarks([key])).get(key);
  return text === undefined ? null : (JSON.parse(text) as ErasePlan);
}

/** Stores the plan of an erasure. */
export async function writePlan(eraser: StoreEraser, target: EraseTarget, plan: ErasePlan): Promise<void> {
  await eraser.writeMarks(new Map([[erasureKey(target), JSON.stringify(plan)]]));
}

/** The key of a stored plan. A user's name is personal data, so the key has only its hash. */
function erasureKey(target: EraseTarget): string {
  const { userId } = target;
  if (userId === undefined) return `erase/session/${target.sessionId}`;
  return `erase/user/${createHash("sha256").update(userId).digest("hex")}`;
}
