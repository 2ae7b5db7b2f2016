/** The part of an SQLite handle that the bare contenders use. */
export interface BareDatabase {
  exec(sql: string): void;
  prepare(sql: string): BareStatement;
  close(): void;
}

export interface BareStatement {
  run(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown[];
}

const PRAGMAS = [
  "busy_timeout = 5000",
  "journal_mode = WAL",
  "synchronous = NORMAL",
  "foreign_keys = ON",
  "wal_autocheckpoint = 4000",
];

/** Opens SQLite with the same driver and pragmas as the SQLite store on this runtime. */
export async function openBareDatabase(path: string): Promise<BareDatabase> {
  const database = await openDatabase(path);
  for (const pragma of PRAGMAS) database.exec(`PRAGMA ${pragma}`);
  return database;
}

async function openDatabase(path: string): Promise<BareDatabase> {
  const builtIn = await import("node:sqlite" as string).catch(() => null);
  if (builtIn !== null) return new builtIn.DatabaseSync(path);
  const { default: Database } = await import("libsql");
  return new Database(path) as unknown as BareDatabase;
}
