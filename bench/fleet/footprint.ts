import postgres from "postgres";
import { createClient } from "redis";

/** The stored data of a server. */
export interface Footprint {
  readonly bytes: number;
  /** Rows of PostgreSQL, keys of Redis. */
  readonly items: number;
  readonly connections: number;
}

/** Measures what a server stores. */
export interface FootprintReader extends AsyncDisposable {
  /** Measures one schema of PostgreSQL, or all of Redis. */
  read(schema: string): Promise<Footprint>;
  /** Deletes a schema of PostgreSQL, or the keys with a prefix in Redis. */
  remove(name: string): Promise<void>;
}

/** Opens a reader for the server of a URL. */
export async function openFootprint(url: string): Promise<FootprintReader> {
  return url.startsWith("redis") ? openRedis(url) : openPostgres(url);
}

async function openPostgres(url: string): Promise<FootprintReader> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  return {
    async read(schema) {
      const tables = await sql`SELECT c.oid::regclass::text AS name FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ${schema} AND c.relkind = 'r'`;
      let [bytes, items] = [0, 0];
      for (const { name } of tables) {
        // Dead rows of updates must not count.
        await sql.unsafe(`VACUUM FULL ${name}`);
        const [row] = await sql.unsafe(
          `SELECT pg_total_relation_size('${name}') AS bytes, (SELECT count(*) FROM ${name}) AS items`,
        );
        bytes += Number(row?.["bytes"]);
        items += Number(row?.["items"]);
      }
      const [row] = await sql`SELECT count(*) AS count FROM pg_stat_activity WHERE client_addr IS NOT NULL`;
      return { bytes, items, connections: Number(row?.["count"]) };
    },
    async remove(name) {
      await sql.unsafe(`DROP SCHEMA IF EXISTS ${name} CASCADE`);
    },
    [Symbol.asyncDispose]: () => sql.end(),
  };
}

async function openRedis(url: string): Promise<FootprintReader> {
  const client = createClient({ url });
  client.on("error", () => {});
  await client.connect();
  return {
    async read() {
      let [bytes, items] = [0, 0];
      for await (const keys of client.scanIterator({ COUNT: 1000 })) {
        const sizes = await Promise.all(keys.map((key) => client.memoryUsage(key, { SAMPLES: 0 })));
        bytes += sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
        items += keys.length;
      }
      const connections = Number(/^connected_clients:(\d+)/m.exec(await client.info("clients"))?.[1]);
      return { bytes, items, connections };
    },
    async remove(name) {
      for await (const keys of client.scanIterator({ MATCH: `${name}:*`, COUNT: 1000 })) {
        if (keys.length > 0) await client.unlink(keys);
      }
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}
