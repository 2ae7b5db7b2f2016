import { randomUUID } from "node:crypto";
import { linkSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root, SetupError } from "./run.mjs";

const beatMs = 1_000;
const staleMs = 15_000;
const waitMaxMs = 15 * 60_000;

/**
 * Runs `body` while no other process of this checkout runs one with the same name.
 * The holder touches its lock file every second. A file that was not touched for a while belongs to a killed process
 * and is removed. Process ids would not do, as they are reused and differ between containers.
 * @template T
 * @param {string} name
 * @param {() => Promise<T>} body
 * @returns {Promise<T>}
 */
export async function withLock(name, body) {
  const folder = join(root, ".cache");
  const lock = join(folder, `${name}.lock`);
  mkdirSync(folder, { recursive: true });
  await acquire(lock);
  const beat = setInterval(() => touch(lock), beatMs);
  try {
    return await body();
  } finally {
    clearInterval(beat);
    rmSync(lock, { force: true });
  }
}

/** @param {string} lock */
async function acquire(lock) {
  const startedAt = Date.now();
  for (let told = false; !tryCreate(lock); told = true) {
    if (removeIfStale(lock)) continue;
    if (Date.now() - startedAt > waitMaxMs) throw new SetupError(`Another process still holds ${lock}; giving up.`);
    if (!told) console.error("Waiting for another process that is setting up this checkout.");
    await sleep(200);
  }
}

/** @param {string} lock */
function tryCreate(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (isCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** @param {string} lock */
function removeIfStale(lock) {
  if (ageMs(lock) < staleMs) return false;
  const taken = `${lock}.${randomUUID()}`;
  try {
    renameSync(lock, taken);
    // Between the check and the rename, another process may have replaced the stale file by a new lock: restore that.
    if (ageMs(taken) < staleMs) linkSync(taken, lock);
  } catch (error) {
    if (!isCode(error, "ENOENT") && !isCode(error, "EEXIST")) throw error;
  }
  rmSync(taken, { force: true });
  return true;
}

/** @param {string} path */
function ageMs(path) {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? 0 : Date.now() - stat.mtimeMs;
}

/** @param {string} path */
function touch(path) {
  try {
    utimesSync(path, new Date(), new Date());
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
  }
}

/**
 * @param {unknown} error
 * @param {string} code
 */
function isCode(error, code) {
  return error instanceof Error && "code" in error && error.code === code;
}
