import { createHash } from "node:crypto";
import type { Checkpoint } from "@langchain/langgraph-checkpoint";
import type { JsonValue } from "../../internal/json.ts";
import type { Entry } from "../../session/log/entry.ts";
import { ID_CHARACTERS_MAX } from "../../session/limits.ts";

/** What a checkpoint changed about a channel: all its items, or those after what an entry left. One value is a list of one item. */
export interface ChannelChange {
  readonly after: string | null;
  readonly list: boolean;
  readonly items: readonly JsonValue[];
}

/** A checkpoint as its entry keeps it: of each channel with a value what it changed, or else the entry that changed it last. */
export interface CheckpointRecord {
  readonly ns: string;
  readonly parent: string | null;
  readonly checkpoint: Omit<Checkpoint, "channel_values">;
  readonly metadata: JsonValue;
  readonly channels: Readonly<Record<string, ChannelChange | string>>;
}

/** The entries that changed the channels of a checkpoint last. */
export type Places = Readonly<Record<string, string>>;

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

/** Where the values of a checkpoint are; nowhere, where there is none. */
export function placesOf(record: CheckpointRecord | null): Places {
  const own = record === null ? "" : entryIdOf(record.ns, record.checkpoint.id);
  const channels = Object.entries(record?.channels ?? {});
  return Object.fromEntries(channels.map(([name, place]) => [name, typeof place === "string" ? place : own]));
}

/** The data of an entry of a kind; null where there is no such entry. */
export function dataOf<T>(entry: Entry | null, customType: string): T | null {
  return entry?.type === "custom" && entry.customType === customType ? (entry.data as T) : null;
}
