import { createHash } from "node:crypto";
import type { Checkpoint } from "@langchain/langgraph-checkpoint";
import type { JsonValue } from "../../internal/json.ts";
import type { Entry } from "../../session/log/entry.ts";
import { ID_CHARACTERS_MAX } from "../../session/limits.ts";

/**
 * The change of a channel in a checkpoint. `items` are all items, or, if `after` names an entry, those added since that entry.
 * A single value is stored as a list of one item, with `list: false`.
 */
export interface ChannelChange {
  readonly after: string | null;
  readonly list: boolean;
  readonly items: readonly JsonValue[];
}

/** A checkpoint as stored in its entry. `channels`: for each channel its change, or the id of the entry that changed it last. */
export interface CheckpointRecord {
  readonly ns: string;
  readonly parent: string | null;
  readonly checkpoint: Omit<Checkpoint, "channel_values">;
  readonly metadata: JsonValue;
  readonly channels: Readonly<Record<string, ChannelChange | string>>;
}

/** For each channel of a checkpoint, the id of the entry that changed it last. */
export type ChannelEntries = Readonly<Record<string, string>>;

/** The pending writes of a task to a checkpoint: channel, index among the task's writes, value. */
export interface WritesRecord {
  readonly task: string;
  readonly writes: readonly (readonly [channel: string, index: number, value: JsonValue])[];
}

/** The `customType` of a thread's entries: checkpoints, pending writes, and the namespaces of sub-graphs with checkpoints. */
export const CHECKPOINT = "langgraph.checkpoint";
export const WRITES = "langgraph.writes";
export const NAMESPACE = "langgraph.namespace";

/** The entry id for a list of names; hashed if it is too long, as the names of nested sub-graphs may be. */
export function entryIdOf(...words: readonly (string | number)[]): string {
  const id = words.filter((word) => word !== "").join("/");
  return id.length <= ID_CHARACTERS_MAX ? id : createHash("sha256").update(id).digest("hex");
}

/** The entries that hold the values of a checkpoint; empty for null. */
export function channelEntriesOf(record: CheckpointRecord | null): ChannelEntries {
  const own = record === null ? "" : entryIdOf(record.ns, record.checkpoint.id);
  const channels = Object.entries(record?.channels ?? {});
  return Object.fromEntries(channels.map(([name, change]) => [name, typeof change === "string" ? change : own]));
}

/** The data of a `custom` entry of the given type; null for other entries and for null. */
export function dataOf<T>(entry: Entry | null, customType: string): T | null {
  return entry?.type === "custom" && entry.customType === customType ? (entry.data as T) : null;
}
