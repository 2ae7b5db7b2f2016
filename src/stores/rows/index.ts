export { type Asking, type Reply, runLater, runNow } from "./asking.ts";
export type { EncodedPlan } from "./encode-plan.ts";
export type { HeadPlace } from "./entry-state.ts";
export { RowDriver, type RowParts, type RowRemoval } from "./row-driver.ts";
export type { MakeLimits } from "../complete/check-limits.ts";
export { ProcessLeases } from "../complete/process-leases.ts";
export type {
  CommitConditions,
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
