export { type DrawnSession, toDot, toMermaid } from "./lineage/lineage-diagram.ts";
export {
  type ExportableSession,
  type LineageRow,
  parseLineageJsonl,
  sessionToRow,
  toJsonl,
} from "./lineage/lineage-export.ts";
export { type LineageJournal, trackLineage, withLineage } from "./lineage/lineage-scope.ts";
export { lineageUsage, type SpendingSession } from "./lineage/lineage.ts";
export {
  ancestors,
  descendants,
  edges,
  type LineageEdge,
  type SessionLike,
  validateAcyclic,
} from "./lineage/lineage.ts";
export { isNode } from "./log/entry.ts";
export type { LineageKind } from "./log/header.ts";
export { branchTo, buildTree, labelsOf, type TreeNode } from "./log/entry-tree.ts";
export { addUsage } from "./usage.ts";
export { SessionRegistry, sessionRegistry } from "./value/session-registry.ts";
export {
  createSystemSession,
  createUserSession,
  detachSession,
  forkSession,
  mergeSessions,
  type SessionInit,
} from "./value/session.ts";
export {
  assistantRow,
  type Row,
  type RowInit,
  type RowKind,
  systemRow,
  toolResultRow,
  Transcript,
  type TranscriptOrigin,
  userRow,
} from "./value/transcript.ts";
