import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "redis";
import postgres from "postgres";
import { postgresUrl } from "../postgres-server.ts";
import { redisPrefix, redisUrl } from "../redis-server.ts";

/** How a key of each type is scanned, because a dump of it is compressed: the command, and its arguments after the key. */
const CONTENT: Readonly<Record<string, readonly string[]>> = {
  string: ["GET"],
  list: ["LRANGE", "0", "-1"],
  set: ["SMEMBERS"],
  zset: ["ZRANGE", "0", "-1"],
  hash: ["HGETALL"],
  stream: ["XRANGE", "-", "+"],
};

/** The raw files or keys of a store that contain a word; `directory` contains the store and its files. */
export async function rawTracesOf(backend: string, directory: string, word: string): Promise<readonly string[]> {
  const files = await filesWith(directory, word);
  if (backend.startsWith("postgres")) return [...files, ...(await filesWith(await databaseDirectory(), word))];
  if (backend.startsWith("redis")) return [...files, ...(await keysWith(word))];
  return files;
}

/** A word as it is written, as an index may normalize it, and as a file may encode it. */
function spellingsOf(word: string): (string | Buffer)[] {
  return [word, word.toUpperCase(), Buffer.from(word, "utf16le"), Buffer.from(word).toString("base64").slice(0, -2)];
}

/** The files below a directory that contain a word. */
export async function filesWith(directory: string, word: string): Promise<string[]> {
  const found: string[] = [];
  for (const item of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(item.parentPath, item.name);
    // A lock file may be removed meanwhile.
    const content = item.isFile() ? await readFile(path).catch(() => Buffer.alloc(0)) : Buffer.alloc(0);
    if (spellingsOf(word).some((each) => content.includes(each))) found.push(path);
  }
  return found;
}

/** The directory of the heap pages of the tests' database, after an analyze, a vacuum and a checkpoint. */
async function databaseDirectory(): Promise<string> {
  const sql = postgres(await postgresUrl(), { max: 1, onnotice: () => {} });
  try {
    await sql.unsafe("VACUUM (ANALYZE)");
    await sql.unsafe("CHECKPOINT");
    const [row] = await sql.unsafe(
      "SELECT current_setting('data_directory') AS path, oid FROM pg_database WHERE datname = current_database()",
    );
    return join(row?.["path"] as string, "base", String(row?.["oid"]));
  } finally {
    await sql.end();
  }
}

async function keysWith(word: string): Promise<string[]> {
  const client = createClient({ url: await redisUrl() });
  await client.connect();
  try {
    const found: string[] = [];
    for await (const keys of client.scanIterator({ MATCH: `${redisPrefix}:*` })) {
      for (const key of keys) {
        const read = CONTENT[await client.type(key)] ?? ["DUMP"];
        const content = await client.sendCommand([read[0] as string, key, ...read.slice(1)]);
        const text = `${key} ${JSON.stringify(content)}`;
        if (spellingsOf(word).some((each) => text.includes(String(each)))) found.push(key);
      }
    }
    return found;
  } finally {
    client.destroy();
  }
}
