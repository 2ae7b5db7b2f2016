import type { EntryDraft } from "../../src/session/log/entry.ts";
import type { SessionHeader } from "../../src/session/log/header.ts";
import type {
  AggregateQuery,
  AppendOptions,
  Checkpoint,
  ForkOptions,
  ReadOptions,
  SessionQuery,
} from "../../src/session/store.ts";

/** An append. Its lease is given by name, because the token differs between stores. */
export interface AppendRequest {
  readonly session: string;
  readonly drafts: readonly EntryDraft[];
  readonly options: AppendOptions;
  readonly lease?: string;
}

/** A request that only reads. */
export type QueryRequest =
  | { readonly kind: "head" | "leaseOf" | "checkpoints"; readonly session: string }
  | { readonly kind: "read"; readonly session: string; readonly options: ReadOptions }
  | { readonly kind: "entry" | "path"; readonly session: string; readonly entry: string }
  | { readonly kind: "list" | "count"; readonly query: SessionQuery }
  | { readonly kind: "search"; readonly text: string; readonly query: SessionQuery }
  | { readonly kind: "aggregate"; readonly query: AggregateQuery };

/** A request to a store as plain data, so that it can be performed on several stores and printed. */
export type Request =
  | QueryRequest
  | {
      readonly kind: "create";
      readonly header: SessionHeader;
      readonly entries: readonly EntryDraft[];
      readonly maxOpenPerUser?: number;
    }
  | ({ readonly kind: "append" } & AppendRequest)
  /** Concurrent appends through all clients. */
  | { readonly kind: "burst"; readonly appends: readonly AppendRequest[] }
  | { readonly kind: "fork"; readonly source: string; readonly header: SessionHeader; readonly options: ForkOptions }
  | { readonly kind: "delete" | "undelete"; readonly session: string }
  | { readonly kind: "purge" | "idle" | "reopen" }
  | { readonly kind: "saveCheckpoint"; readonly checkpoint: Checkpoint }
  | { readonly kind: "loadCheckpoint" | "deleteCheckpoint"; readonly id: string }
  | { readonly kind: "lease"; readonly session: string; readonly run: string; readonly name: string }
  | { readonly kind: "renew" | "release"; readonly name: string };
