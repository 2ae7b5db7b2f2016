import type { TimelineCheckpoint } from "skein/client";
import type { Checkpoint } from "../../../src/session/store.ts";

/** The position of a checkpoint in words. */
export function positionText({ leafId, stepsBack }: Pick<TimelineCheckpoint, "leafId" | "stepsBack">): string {
  if (leafId === null) return "before the first entry";
  if (stepsBack === null) return "on another branch";
  if (stepsBack === 0) return "at the session's current position";
  return `${stepsBack === 1 ? "1 entry" : `${stepsBack.toLocaleString("en")} entries`} back on the active path`;
}

/** The note of a checkpoint; null if it has none. */
export function noteOf({ metadata }: Pick<Checkpoint, "metadata">): string | null {
  const { note } = metadata;
  return typeof note === "string" && note.trim() !== "" ? note : null;
}
