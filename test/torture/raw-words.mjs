import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import postgres from "postgres";

/**
 * The raw files or keys of a store that contain one of some words, as text or in base64.
 * @param {object} place
 * @param {string} place.kind
 * @param {string} place.address
 * @param {string | null} place.folder where blobs are, if not in the store
 * @param {readonly string[]} words
 * @returns {Promise<readonly string[]>}
 */
export async function tracesIn({ kind, address, folder }, words) {
  const forms = words.flatMap((word) => [word, Buffer.from(word).toString("base64")]);
  const [url = ""] = address.split("#");
  const found = folder === null ? [] : inFiles(folder, forms);
  if (kind === "postgres") found.push(...inFiles(await databaseFolder(url), forms));
  else if (kind === "redis") found.push(...(await inKeys(url, forms)));
  else
    found.push(
      ...inFiles(kind === "jsonl" ? url.slice("jsonl:".length) : join(url.slice("sqlite:".length), ".."), forms),
    );
  return found;
}

/**
 * @param {string} folder
 * @param {readonly string[]} forms
 */
function inFiles(folder, forms) {
  const found = [];
  for (const item of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!item.isFile()) continue;
    const path = join(item.parentPath, item.name);
    const content = readFileSync(path);
    const form = forms.find((each) => content.includes(each));
    if (form !== undefined) found.push(`${path} (${form})`);
  }
  return found;
}

/** @param {string} url */
async function databaseFolder(url) {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await sql.unsafe("VACUUM (ANALYZE)");
    await sql.unsafe("CHECKPOINT");
    const [row] = await sql.unsafe(
      "SELECT current_setting('data_directory') AS path, oid FROM pg_database WHERE datname = current_database()",
    );
    return join(row?.path, "base", String(row?.oid));
  } finally {
    await sql.end();
  }
}

/**
 * @param {string} url
 * @param {readonly string[]} forms
 */
async function inKeys(url, forms) {
  const client = new Redis(url);
  /** How a key of each type is read. @type {Readonly<Record<string, readonly string[]>>} */
  const reading = {
    string: ["GET"],
    list: ["LRANGE", "0", "-1"],
    set: ["SMEMBERS"],
    zset: ["ZRANGE", "0", "-1"],
    hash: ["HGETALL"],
    stream: ["XRANGE", "-", "+"],
  };
  const found = [];
  try {
    for (const key of await client.keys("*")) {
      const [command = "DUMP", ...args] = reading[await client.type(key)] ?? [];
      const text = `${key} ${JSON.stringify(await client.call(command, key, ...args))}`;
      const form = forms.find((each) => text.includes(each));
      if (form !== undefined) found.push(`${key} (${form})`);
    }
    return found;
  } finally {
    client.disconnect();
  }
}
