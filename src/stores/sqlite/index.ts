export type { SqliteDatabase, SqlValue } from "./sqlite-handle.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./sqlite-store.ts";
