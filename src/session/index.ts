export { isNode } from "./entry.ts";
export type { LineageKind } from "./header.ts";
export { type DrawnSession, toDot, toMermaid } from "./lineage-diagram.ts";
export { type ExportableSession, type LineageRow, parseLineageJsonl, sessionToRow, toJsonl } from "./lineage-export.ts";
export { type LineageJournal, trackLineage, withLineage } from "./lineage-scope.ts";
export { lineageUsage, type SpendingSession } from "./lineage-usage.ts";
export { ancestors, descendants, edges, type LineageEdge, type SessionLike, validateAcyclic } from "./lineage.ts";
export { SessionRegistry, sessionRegistry } from "./session-registry.ts";
export {
  createSystemSession,
  createUserSession,
  detachSession,
  forkSession,
  mergeSessions,
  type SessionInit,
} from "./session.ts";
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
} from "./transcript.ts";
export { branchTo, buildTree, labelsOf, type TreeNode } from "./tree.ts";
export { addUsage } from "./usage.ts";
