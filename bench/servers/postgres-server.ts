import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { openPostgresStore } from "skein/postgres";
import type { BenchServer } from "./bench-server.ts";

/**
 * A PostgreSQL database with a client that the store and the bare inserts share. Unless `synced`, a commit does not
 * wait for the disk.
 */
export async function openPostgresServer(url: string, { synced = true } = {}): Promise<BenchServer> {
  const connection = synced ? {} : { synchronous_commit: "off" };
  const sql = postgres(url, { max: 10, onnotice: () => {}, connection });
  const prefix = `skein_bench_${randomUUID().slice(0, 8)}`;
  const schemas = new Set([prefix]);
  await sql.unsafe(`CREATE SCHEMA ${prefix}`);
  await sql.unsafe(
    `CREATE TABLE ${prefix}.bare (session bigint, seq bigint, id text, body json, PRIMARY KEY (session, seq))`,
  );
  const insert = `INSERT INTO ${prefix}.bare (session, seq, id, body) VALUES ($1, $2, $3, $4::text::json)`;
  let seq = 0;
  return {
    kind: "postgres",
    bares: [
      {
        label: "bare single-row insert, same client",
        write: ({ session, id, body }) => sql.unsafe(insert, [session, seq++, id, body], { prepare: true }),
      },
    ],
    openStore(name) {
      const schema = `${prefix}_${name}`;
      schemas.add(schema);
      return openPostgresStore({ sql, schema });
    },
    async [Symbol.asyncDispose]() {
      for (const schema of schemas) await sql.unsafe(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await sql.end();
    },
  };
}
