export type { SqliteDatabase, SqlValue } from "./sqlite-handle.ts";
export { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from "./sqlite-store.ts";
