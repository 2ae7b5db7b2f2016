export type { SessionSummary } from "../session/listing.ts";
export { exportJournalJsonl, type ExportJournalOptions, exportJsonl } from "./export-lineage.ts";
export type { FileOptions } from "./file-options.ts";
export { defaultSessionDirectory, defaultStoreUrl, skeinHome } from "./home.ts";
export { listSessions } from "./list-sessions.ts";
export { loadSession, type PersistedOptions, type PersistedSession } from "./persisted-session.ts";
export { deleteSession, listPersistedSessions, type PersistedSummary, pruneSessions } from "./persisted-sessions.ts";
export { openSessionWriter, SessionWriter, type SessionWriterOptions } from "./session-writer.ts";
