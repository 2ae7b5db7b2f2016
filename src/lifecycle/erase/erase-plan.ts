import { createHash } from "node:crypto";
import type { StoreEraser } from "../../session/store.ts";
import type { EraseTarget, NotCovered } from "./erase-report.ts";

/** A session that goes. */
export interface PlannedRemoval {
  readonly id: string;
  readonly entries: number;
  readonly checkpoints: number;
  readonly snapshots: number;
}

/** A session of someone else that loses entries. */
export interface PlannedCleaning {
  readonly id: string;
  /** Whether it is in the trash, and goes back there. */
  readonly deleted: boolean;
  readonly entryIds: readonly string[];
  /** Checkpoints that lose what their maker noted with them; left out in plans of earlier versions. */
  readonly checkpointIds?: readonly string[];
}

/** Entries of a session that goes, which a fork of someone else keeps. */
export interface PlannedKeeping {
  readonly sessionId: string;
  readonly forkId: string;
  readonly entryIds: readonly string[];
}

/** What an erasure will do. It is on record before anything is done, and holds ids only, no words and no names of users. */
export interface ErasePlan {
  readonly at: string;
  readonly forks: "keep" | "erase";
  readonly removals: readonly PlannedRemoval[];
  readonly cleanings: readonly PlannedCleaning[];
  readonly kept: readonly PlannedKeeping[];
  readonly notCovered: readonly NotCovered[];
  readonly done: boolean;
}

/** Reads the plan of an erasure that was begun; null where none was. */
export async function readPlan(eraser: StoreEraser, target: EraseTarget): Promise<ErasePlan | null> {
  const key = erasureKey(target);
  const text = (await eraser.readMarks([key])).get(key);
  return text === undefined ? null : (JSON.parse(text) as ErasePlan);
}

/** Puts the plan of an erasure on record. */
export async function writePlan(eraser: StoreEraser, target: EraseTarget, plan: ErasePlan): Promise<void> {
  await eraser.writeMarks(new Map([[erasureKey(target), JSON.stringify(plan)]]));
}

/** What an erasure is noted under. A user's name is about a person: what stays of it does not tell it. */
function erasureKey(target: EraseTarget): string {
  const { userId } = target;
  if (userId === undefined) return `erase/session/${target.sessionId}`;
  return `erase/user/${createHash("sha256").update(userId).digest("hex")}`;
}
