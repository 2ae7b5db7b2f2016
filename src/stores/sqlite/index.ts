export type { SqlValue } from "../sql/sql-database.ts";
export type { SqliteDatabase } from "./sqlite-handle.ts";
export { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from "./sqlite-store.ts";
