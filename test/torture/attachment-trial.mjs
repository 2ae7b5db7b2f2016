import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createHeader, SessionManager } from "skein";
import { startS3 } from "../../scripts/s3.mjs";
import { openWithBlobs, rootOf, wordOf } from "./attachment-store.mjs";
import { tracesIn } from "./raw-words.mjs";
import { trials } from "./trials.mjs";

const program = fileURLToPath(new URL("attachment-member.mjs", import.meta.url));
const members = 3;
const roots = 2;
/** After this many kills, all processes are stopped and the logs are compared with the blobs. */
const killsARound = 10;
const killAfterMsMax = 600;
const progressEveryMs = 5_000;

/**
 * Where attachments can be tried. The second part of a name is where blobs are, if not in the store.
 * @type {readonly string[]}
 */
export const attachmentStores = ["jsonl", "sqlite", "postgres", "redis", "jsonl files", "sqlite S3"];

/**
 * The result of a trial.
 * @typedef {object} Outcome
 * @property {number} kills
 * @property {number} entries how many entries with attachments were read, with their bytes
 * @property {number} erased how many sessions with attachments were erased
 * @property {readonly string[]} violations
 */

/**
 * Lets processes append, fork, sweep and erase attachments in the same sessions, kills them at random moments, and looks for
 * entries without their bytes, for erased bytes, and for blobs that nothing refers to.
 * @param {string} store
 * @param {object} limits
 * @param {number} limits.durationMs
 * @param {number} [limits.killsMax]
 * @param {AbortSignal} [limits.signal] ends it early
 * @param {(sentence: string) => void} [limits.report]
 * @returns {Promise<Outcome>}
 */
export async function runAttachmentTrial(store, { durationMs, killsMax = 200, signal, report }) {
  const place = await openPlace(store);
  /** @type {string[]} */
  const violations = [];
  let [kills, entries, erased] = [0, 0, 0];
  try {
    const [begin, end] = [Date.now(), Date.now() + durationMs];
    let told = begin;
    for (let round = 0; kills < killsMax && Date.now() < end && !signal?.aborted; round++) {
      const count = Math.min(killsARound, killsMax - kills);
      const names = Array.from({ length: roots }, (_, index) => `r${round}-${index}`);
      const secrets = await disturb(place, names, count, violations);
      kills += count;
      const found = await compare(place, names, secrets);
      violations.push(...found.problems);
      entries += found.entries;
      erased += secrets.length;
      if (report && Date.now() - told > progressEveryMs) {
        told = Date.now();
        report(`${Math.round((told - begin) / 1000)} s: ${kills} kills, ${entries} entries with attachments read.`);
      }
    }
    return { kills, entries, erased, violations };
  } finally {
    await place.close();
  }
}

/**
 * @typedef {object} Place
 * @property {string} kind
 * @property {string} address
 * @property {string} blobs
 * @property {string | null} folder where blobs are, if not in the store
 * @property {() => Promise<void>} close
 */

/**
 * @param {string} store
 * @returns {Promise<Place>}
 */
async function openPlace(store) {
  const [kind = "", elsewhere] = store.split(" ");
  const trial = trials.find((each) => each.kind === "writers" && each.store === kind);
  if (trial === undefined) throw new Error(`There is no store ${kind} to keep attachments in.`);
  const opened = await trial.open();
  const folder = elsewhere === undefined ? null : mkdtempSync(join(tmpdir(), "skein-torture-blobs-"));
  const server = elsewhere === "S3" ? await startS3(folder ?? "") : null;
  return {
    kind,
    address: opened.address,
    blobs: server !== null ? `s3:${JSON.stringify(server.options)}` : folder === null ? "" : `files:${folder}`,
    folder,
    async close() {
      await server?.stop();
      if (folder !== null) rmSync(folder, { recursive: true, force: true });
      await opened.close();
    },
  };
}

/**
 * Lets members work and kills some of them. Resolves to the sessions whose content must be erased.
 * @param {Place} place
 * @param {readonly string[]} names of root sessions
 * @param {number} kills
 * @param {string[]} violations
 */
async function disturb({ address, blobs }, names, kills, violations) {
  const store = await openWithBlobs(address, blobs);
  for (const id of names) await store.create(createHeader({ id, userId: "ada" }));
  await store.close();
  /** @type {Set<string>} */
  const secrets = new Set();
  let hired = 0;
  const hire = () => new Member([address, blobs, names.join(","), `m${hired++}`], secrets, violations);
  const crew = Array.from({ length: members }, hire);
  for (let done = 0; done < kills; done++) {
    const index = Math.floor(Math.random() * crew.length);
    const member = /** @type {Member} */ (crew[index]);
    await member.ready;
    await wait(Math.random() * killAfterMsMax);
    await member.kill();
    crew[index] = hire();
  }
  await Promise.all(crew.map((member) => member.stop()));
  return [...secrets];
}

/** A process that appends, sweeps and erases attachments. */
class Member {
  #child;
  #closed;
  /** @type {Promise<void>} */
  ready;

  /**
   * @param {readonly string[]} args
   * @param {Set<string>} secrets
   * @param {string[]} violations
   */
  constructor(args, secrets, violations) {
    this.#child = spawn(process.execPath, [program, ...args], { stdio: ["pipe", "pipe", "inherit"] });
    this.#closed = once(this.#child, "close");
    this.ready = new Promise((resolve) => {
      this.#closed.then(() => resolve());
      createInterface({ input: this.#child.stdout }).on("line", (line) => {
        const [word, ...rest] = line.split(" ");
        if (word === "ready") resolve();
        if (word === "secret") secrets.add(rest[0] ?? "");
        if (word === "wrong") violations.push(rest.join(" "));
      });
    });
  }

  async kill() {
    this.#child.kill("SIGKILL");
    await this.#closed;
  }

  async stop() {
    await this.ready;
    this.#child.stdin.end();
    await this.#closed;
  }
}

/**
 * Erases every session that must be erased, sweeps, and looks for everything that must not be.
 * @param {Place} place
 * @param {readonly string[]} names
 * @param {readonly string[]} secrets
 */
async function compare({ kind, address, blobs, folder }, names, secrets) {
  /** @type {string[]} */
  const problems = [];
  const store = await openWithBlobs(address, blobs);
  try {
    const manager = new SessionManager({ store });
    for (const id of secrets) await manager.erase({ sessionId: id }).catch(ignoreMissing);
    // This also erases blobs that a killed process stored before it created the session, and their remains in database files.
    await manager.erase({ sessionId: names[0] ?? "" }, { forks: "erase", rewrite: true });
    await store.sweepBlobs({ graceMs: 0 });
    const left = await tracesIn({ kind, address, folder }, secrets.map(wordOf));
    for (const each of left) problems.push(`Erased bytes are in ${each}.`);
    const { referred, entries, missing } = await readReferences(store);
    problems.push(...missing);
    const { blobs: there, removed } = await store.sweepBlobs({ graceMs: 0 });
    if (removed > 0) problems.push(`A second sweep removes ${removed} blobs.`);
    if (there !== referred) problems.push(`There are ${there} blobs, and entries refer to ${referred}.`);
    for (const { header } of (await store.list({ limit: 1000 })).items) await store.delete(header.id);
    await store.purge({ before: "9999-12-31T23:59:59.999Z" });
    await store.sweepBlobs({ graceMs: 0 });
    return { problems, entries };
  } finally {
    await store.close();
  }
}

/** Reads the bytes of every attachment of every entry. @param {import("skein").SessionStore} store */
async function readReferences(store) {
  /** @type {Set<string>} */
  const referred = new Set();
  /** @type {string[]} */
  const missing = [];
  let entries = 0;
  for (const { header } of (await store.list({ limit: 1000 })).items) {
    for await (const entry of store.read(header.id)) {
      for (const [, name = ""] of JSON.stringify(entry).matchAll(/"(sha256:[0-9a-f]{64})"/g)) {
        entries += 1;
        const key = `${rootOf(header.id)} ${name}`;
        if (referred.has(key)) continue;
        referred.add(key);
        const bytes = await (await store.blob(header.id, name))?.bytes();
        const hash = createHash("sha256").update(bytes ?? "");
        if (bytes === undefined || name !== `sha256:${hash.digest("hex")}`)
          missing.push(`Entry ${entry.id} of session ${header.id} is without its blob ${name}.`);
      }
    }
  }
  return { referred: referred.size, entries, missing };
}

/** @param {{ code?: string }} error */
function ignoreMissing(error) {
  if (error.code !== "SESSION_NOT_FOUND") throw error;
}
