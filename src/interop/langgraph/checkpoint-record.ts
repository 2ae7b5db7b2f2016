import { createHash } from "node:crypto";
import type { CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Entry, EntryOf } from "../../session/entry.ts";
import { ID_CHARACTERS_MAX } from "../../session/limits.ts";

/** What a checkpoint changed about a channel: its value, a part of the list that the parent has there, or that it is gone. */
export type ChannelChange =
  | { readonly value: JsonValue }
  /** `depth` counts the splices since the list was last written whole. */
  | { readonly start: number; readonly removed: number; readonly items: readonly JsonValue[]; readonly depth: number }
  | null;

/** A checkpoint as its entry keeps it: the channels that changed since its parent, all else whole. */
export interface CheckpointRecord {
  readonly ns: string;
  readonly id: string;
  readonly parent: string | null;
  readonly v: number;
  readonly ts: string;
  readonly versions: Readonly<Record<string, number | string>>;
  readonly seen: Readonly<Record<string, Readonly<Record<string, number | string>>>>;
  readonly metadata: JsonValue;
  readonly changed: Readonly<Record<string, ChannelChange>>;
  /** The first entry with writes to this checkpoint, where that was stored before the checkpoint was. */
  readonly early?: string;
}

/** What a task wrote, to be applied to a checkpoint. */
export interface WritesRecord {
  readonly ns: string;
  readonly checkpoint: string;
  readonly task: string;
  /** Channel, place among the task's writes, value. */
  readonly writes: readonly (readonly [string, number, JsonValue])[];
}

/** The decoded metadata of a checkpoint. */
export type Metadata = CheckpointMetadata & Readonly<Record<string, unknown>>;

/** The `customType` of a checkpoint's entry. */
export const CHECKPOINT = "langgraph.checkpoint";

/** The `customType` of an entry with pending writes. */
export const WRITES = "langgraph.writes";

/** The `customType` of the entry that says that a sub-graph has checkpoints. */
export const NAMESPACE = "langgraph.namespace";

/** The id of the entry that keeps a checkpoint. */
export function checkpointEntryId(ns: string, checkpointId: string): string {
  return bounded(ns === "" ? checkpointId : `${ns}/${checkpointId}`);
}

/** The id of the entry that says that a sub-graph has checkpoints. */
export function namespaceEntryId(ns: string): string {
  return bounded(`${NAMESPACE}/${ns}`);
}

/** The record of a checkpoint's entry, or null for an entry of another kind. */
export function checkpointOf(entry: Entry | null): CheckpointRecord | null {
  return isCustom(entry, CHECKPOINT) ? (entry.data as unknown as CheckpointRecord) : null;
}

/** The record of an entry with writes, or null for an entry of another kind. */
export function writesOf(entry: Entry): WritesRecord | null {
  return isCustom(entry, WRITES) ? (entry.data as unknown as WritesRecord) : null;
}

/** A record as an entry's data. */
export function asData(record: CheckpointRecord | WritesRecord): JsonObject {
  return record as unknown as JsonObject;
}

function isCustom(entry: Entry | null, customType: string): entry is EntryOf<"custom"> {
  return entry?.type === "custom" && entry.customType === customType;
}

/** Names of nested sub-graphs may be longer than an id. */
function bounded(id: string): string {
  return id.length <= ID_CHARACTERS_MAX ? id : createHash("sha256").update(id).digest("hex");
}
