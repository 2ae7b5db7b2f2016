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

/** One append as it is asked for; a lease is named, because its token is another in every store. */
export interface AppendRequest {
  readonly session: string;
  readonly drafts: readonly EntryDraft[];
  readonly options: AppendOptions;
  readonly lease?: string;
}

/** Something that is asked of a store and changes nothing. */
export type LookRequest =
  | { readonly kind: "head" | "leaseOf" | "checkpoints"; readonly session: string }
  | { readonly kind: "read"; readonly session: string; readonly options: ReadOptions }
  | { readonly kind: "entry" | "path"; readonly session: string; readonly entry: string }
  | { readonly kind: "list" | "count"; readonly query: SessionQuery }
  | { readonly kind: "search"; readonly text: string; readonly query: SessionQuery }
  | { readonly kind: "aggregate"; readonly query: AggregateQuery };

/** Something that is asked of a store, as plain data, so that it can be asked of another one and be printed. */
export type Request =
  | LookRequest
  | {
      readonly kind: "create";
      readonly header: SessionHeader;
      readonly entries: readonly EntryDraft[];
      readonly maxOpenPerUser?: number;
    }
  | ({ readonly kind: "append" } & AppendRequest)
  /** Several appends at once, through all clients. */
  | { readonly kind: "burst"; readonly appends: readonly AppendRequest[] }
  | { readonly kind: "fork"; readonly source: string; readonly header: SessionHeader; readonly options: ForkOptions }
  | { readonly kind: "delete" | "undelete"; readonly session: string }
  | { readonly kind: "purge" | "idle" | "reopen" }
  | { readonly kind: "saveCheckpoint"; readonly checkpoint: Checkpoint }
  | { readonly kind: "loadCheckpoint" | "deleteCheckpoint"; readonly id: string }
  | { readonly kind: "lease"; readonly session: string; readonly run: string; readonly name: string }
  | { readonly kind: "renew" | "release"; readonly name: string };
