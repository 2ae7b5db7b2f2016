export type { PostgresClient } from "./open-postgres.ts";
export type { PgClient, PgPool, PgPoolClient, PgQuery } from "./pg-connection.ts";
export { openPostgresStore, type PostgresStoreOptions } from "./postgres-store.ts";
