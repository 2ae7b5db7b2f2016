export { type Asking, type Reply, runLater, runNow } from "./asking.ts";
export type { EncodedPlan } from "./encode-plan.ts";
export type { HeadPlace } from "./entry-state.ts";
export { type RowCheckpoints, RowDriver, type RowListing, type RowParts, type RowRemoval } from "./row-driver.ts";
export type {
  CommitConditions,
  MakeLimits,
  NewSession,
  RowPort,
  RowSession,
  StateRow,
  StoredRow,
} from "./row-port.ts";
export { RowReader } from "./row-reader.ts";
export { kindOf, RUNS_BITS, runsColumns } from "./runs-columns.ts";
export { type Segment, segmentsAfter } from "./segments.ts";
export { SessionCache } from "./session-cache.ts";
