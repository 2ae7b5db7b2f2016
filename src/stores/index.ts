export {
  APPEND_ENTRIES_MAX,
  ENTRY_BYTES_MAX,
  HEADER_BYTES_MAX,
  ID_CHARACTERS_MAX,
  PAGE_ITEMS_MAX,
} from "../session/limits.ts";
export {
  type AddedEntry,
  type AppendInput,
  type AppendPlan,
  type Found,
  KnownLog,
  NOTHING_FOUND,
  NOTHING_KNOWN,
  planAppend,
  planFirst,
  planLater,
  type PlannedAppend,
  planNow,
  type StoredEntry,
  type Wanted,
} from "../session/log/append-plan.ts";
export type { CheckedDraft } from "../session/log/draft.ts";
export type { EntryStamp, LostBody } from "../session/log/entry.ts";
export { EMPTY_PATH, emptyHead, inheritedCount, stepHead, stepPath } from "../session/log/fold.ts";
export { forkedHeader } from "../session/log/forked-header.ts";
export { type ForkPoint, FORMAT_VERSION, type Inherited } from "../session/log/header.ts";
export type { LedgerHour, LedgerPage, LedgerTable, SpentAmounts } from "../session/ledger.ts";
export type { RunsCondition } from "../session/log/open-runs.ts";
export { readSettings, type SettingsChange, settingsFrom, type SettingsNode } from "../session/log/settings.ts";
export { isOpen } from "../session/query.ts";
export { parseSearch, type SearchTerm } from "../session/search.ts";
export type {
  CheckpointTable,
  DriverPurge,
  LeaseTable,
  ListPosition,
  MaybePromise,
  ReadRange,
  SessionListing,
  StoreDriver,
  StoredLease,
  Subscription,
} from "../session/store-driver.ts";
export type {
  AggregateKey,
  AggregateQuery,
  AggregateRow,
  ImportedSums,
  AppendOptions,
  AppendResult,
  CreateOptions,
  DamagedSession,
  ForkOptions,
  Guard,
  Lease,
  LeaseInfo,
  PurgeQuery,
  ReadJsonOptions,
  ReadOptions,
  SearchHit,
  SearchMatch,
  SessionPage,
  SessionQuery,
  StoreCapabilities,
  StoreEraser,
  UndeleteOptions,
  WatchOptions,
} from "../session/store.ts";
export type { MakeLimits } from "./complete/session-limits.ts";
export { createStore } from "./complete/create-store.ts";
export { ProcessLeases } from "./complete/process-leases.ts";
export { ScannedListing, type ScannedSessions } from "./complete/scanned-listing.ts";
export { type CopiedSession, type CopyProgress, copySession, type CopySessionOptions } from "./copy/copy-session.ts";
export {
  type CopyFailure,
  copyStore,
  type CopyStoreOptions,
  type StoreCopy,
  type StoreCopyProgress,
} from "./copy/copy-store.ts";
export { type CheckProgress, checkStore, type CheckStoreOptions, type StoreReport } from "./doctor/check-store.ts";
export { digestOf, type DigestOptions, type LogDigest } from "./doctor/log-digest.ts";
export type { FindingKind, StoreFinding } from "./doctor/store-finding.ts";
export { type Coroutine, runAsync, runSync } from "./rows/coroutine.ts";
export type { EncodedPlan, LocatedHead } from "./rows/row-encoding.ts";
export { RowDriver, type RowParts, type RowRemoval } from "./rows/row-driver.ts";
export type {
  CommitConditions,
  NewRowSession,
  RowPort,
  RowSession,
  StateRow,
  StoredRow,
} from "./rows/row-port.ts";
export { RowReader } from "./rows/row-reader.ts";
export { runsKindOf, RUNS_BITS, runsColumns } from "./rows/runs-columns.ts";
export { type Segment, segmentsAfter } from "./rows/segments.ts";
export { SessionCache } from "./rows/session-cache.ts";
