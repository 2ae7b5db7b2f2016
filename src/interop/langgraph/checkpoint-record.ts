import { createHash } from "node:crypto";
import type { Checkpoint } from "@langchain/langgraph-checkpoint";
import type { JsonValue } from "../../internal/json.ts";
import type { Entry } from "../../session/log/entry.ts";
import { ID_CHARACTERS_MAX } from "../../session/limits.ts";

/** What a checkpoint changed about a channel: the items it has, or those after its parent's. One value is a list of one item. */
export interface ChannelChange {
  readonly after: boolean;
  readonly list: boolean;
  readonly items: readonly JsonValue[];
}

/** A checkpoint as its entry keeps it: the channels that it changed; its parent has the others. */
export interface CheckpointRecord {
  readonly ns: string;
  readonly parent: string | null;
  readonly checkpoint: Omit<Checkpoint, "channel_values">;
  readonly metadata: JsonValue;
  readonly changed: Readonly<Record<string, ChannelChange>>;
}

/** What a task wrote, to be applied to a checkpoint: channel, index among the task's writes, value. */
export interface WritesRecord {
  readonly task: string;
  readonly writes: readonly (readonly [channel: string, index: number, value: JsonValue])[];
}

/** The `customType` of the entries of a thread: its checkpoints, what tasks wrote, and which sub-graphs have checkpoints. */
export const CHECKPOINT = "langgraph.checkpoint";
export const WRITES = "langgraph.writes";
export const NAMESPACE = "langgraph.namespace";

/** The id of the entry that is found by some words; the names of nested sub-graphs may be longer than an id. */
export function entryIdOf(...words: readonly (string | number)[]): string {
  const id = words.filter((word) => word !== "").join("/");
  return id.length <= ID_CHARACTERS_MAX ? id : createHash("sha256").update(id).digest("hex");
}

/** The data of an entry of a kind; null where there is no such entry. */
export function dataOf<T>(entry: Entry | null, customType: string): T | null {
  return entry?.type === "custom" && entry.customType === customType ? (entry.data as T) : null;
}
