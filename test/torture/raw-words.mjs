import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import postgres from "postgres";

/**
 * Where to search.
 * @typedef {object} Searched
 * @property {string} kind of the store
 * @property {string} address
 * @property {string | null} folder where blobs are, if not in the store
 */

const program = fileURLToPath(import.meta.url);

/**
 * The raw files or keys of a store that contain one of some words, as text or in base64. They are read in another process: SQLite
 * loses its locks when its process closes another handle of the same file.
 * @param {Searched} place
 * @param {readonly string[]} words
 * @returns {Promise<readonly string[]>}
 */
export async function tracesIn(place, words) {
  const child = spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(JSON.stringify({ place, words }));
  const [found, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== 0) throw new Error(`The search for raw words ended with exit code ${code}.`);
  return JSON.parse(found);
}

if (process.argv[1] === program) {
  const { place, words } = JSON.parse(await text(process.stdin));
  process.stdout.write(JSON.stringify(await search(place, words)));
}

/**
 * @param {Searched} place
 * @param {readonly string[]} words
 */
async function search({ kind, address, folder }, words) {
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
      const content = `${key} ${JSON.stringify(await client.call(command, key, ...args))}`;
      const form = forms.find((each) => content.includes(each));
      if (form !== undefined) found.push(`${key} (${form})`);
    }
    return found;
  } finally {
    client.disconnect();
  }
}
