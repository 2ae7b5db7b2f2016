import postgres from "postgres";
import { createClient } from "redis";
import type { ServerKind } from "./server-kind.ts";

/** Counts the bytes that a server has written so far. Disposing removes the data of the measured peer. */
export interface ServerBytes extends AsyncDisposable {
  read(): Promise<number>;
}

/**
 * PostgreSQL: the bytes of its write-ahead log, which contains every write. Redis: its used memory, which contains all
 * data.
 */
export async function openServerBytes(kind: ServerKind, url: string): Promise<ServerBytes> {
  return kind === "postgres" ? openPostgresBytes(url) : openRedisBytes(url);
}

async function openPostgresBytes(url: string): Promise<ServerBytes> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  return {
    async read() {
      const [row] = await sql.unsafe("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS bytes");
      return Number(row?.["bytes"]);
    },
    async [Symbol.asyncDispose]() {
      for (const name of ["skein", "langgraph"])
        await sql.unsafe(`DROP SCHEMA IF EXISTS ${name}_bench_${process.pid} CASCADE`);
      await sql.end();
    },
  };
}

async function openRedisBytes(url: string): Promise<ServerBytes> {
  const client = createClient({ url });
  client.on("error", () => {});
  await client.connect();
  return {
    async read() {
      return Number(/^used_memory:(\d+)/m.exec(await client.info("memory"))?.[1]);
    },
    async [Symbol.asyncDispose]() {
      for (const pattern of [`skein_bench_${process.pid}:*`, `*bench-${process.pid}-*`]) {
        for await (const keys of client.scanIterator({ MATCH: pattern, COUNT: 1000 })) {
          if (keys.length > 0) await client.unlink(keys);
        }
      }
      await client.close();
    },
  };
}
