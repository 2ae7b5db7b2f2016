import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openSqliteStore } from "skein/sqlite";

/** @typedef {import("node:child_process").ChildProcess} ChildProcess */
/** @typedef {import("./http-client.mjs").Tally} Tally */
/** @typedef {import("./http-server.mjs").Standing} Standing */
/** @typedef {import("./http-server.mjs").Rest} Rest */

/**
 * The limits of a load test.
 * @typedef {object} LoadLimits
 * @property {number} durationMs
 * @property {number} [processes] of clients
 * @property {AbortSignal} [signal] ends it early
 * @property {(sentence: string) => void} [report]
 */

/**
 * The result of a trial of a server under load.
 * @typedef {object} LoadOutcome
 * @property {number} answered requests
 * @property {number} vanished clients
 * @property {number} left requests whose client left before the end of the answer
 * @property {string} memory after the first part of the time, and in the end
 * @property {number} drainMs
 * @property {readonly string[]} violations
 */

const usersEach = 4;
const vanishingEach = 3;
const sampleEveryMs = 2_000;
const reportEvery = 5;
/** The first minute is for caches to fill and code to be compiled; of a short trial, the first half. */
const warmMsMax = 60_000;
const drainMsMax = 10_000;
const exitMsMax = 5_000;
const samplesCompared = 5;
/** Includes memory that the allocator has not returned, and up to 1,000 ended runs that a server keeps. */
const growthBytesMax = 16_000_000;
const residentGrowthMax = 1.1;

/**
 * Lets client processes use a server in all ways concurrently, and vanish in the middle, and then drains it under load.
 *
 * Memory is flat when the median of the last samples, each taken after all garbage was collected, is at most 16 MB
 * above that of the first samples after the first minute; for all of the process, a tenth more.
 * @param {LoadLimits} limits
 * @returns {Promise<LoadOutcome>}
 */
export async function runHttpTrial(limits) {
  const { durationMs, processes = 3, report } = limits;
  const directory = mkdtempSync(join(tmpdir(), "skein-torture-"));
  const path = join(directory, "skein.db");
  /** @type {ChildProcess[]} */
  const children = [];
  try {
    const server = start("http-server.mjs", [path, String(drainMsMax)], ["--expose-gc"]);
    children.push(server);
    const url = /** @type {string} */ (await messageOf(server));
    const clients = Array.from({ length: processes }, (_, index) =>
      start("http-client.mjs", [url, `c${index}`, String(usersEach), String(vanishingEach)]),
    );
    children.push(...clients);
    const standings = await watchMemory(server, limits);
    await Promise.all(clients.map((client) => ask(client, "calm")));
    const last = /** @type {Standing} */ (await ask(server, "standing"));
    await Promise.all(clients.map((client) => ask(client, "ending")));
    const { drainMs, violations: drained } = await drain(server);
    const tallies = /** @type {Tally[]} */ (await Promise.all(clients.map((client) => ask(client, "stop"))));
    report?.(doneOf(tallies));
    const { memory, violations: grown } = compareMemory(standings, durationMs);
    return {
      answered: last.answered,
      vanished: tallies.reduce((sum, { vanished }) => sum + vanished, 0),
      left: last.left,
      memory,
      drainMs,
      violations: [...unexpectedIn(tallies), ...grown, ...drained, ...(await leftRuns(path)), ...(await doctor(path))],
    };
  } finally {
    for (const child of children) child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * @param {string} program
 * @param {readonly string[]} args
 * @param {readonly string[]} flags
 */
function start(program, args, flags = []) {
  const file = fileURLToPath(new URL(program, import.meta.url));
  return fork(file, [...args], {
    execArgv: ["--no-warnings", ...flags],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
}

/**
 * The next message of a process; it is wrong if the process ends instead.
 * @param {ChildProcess} child
 * @returns {Promise<unknown>}
 */
function messageOf(child) {
  return new Promise((resolve, reject) => {
    const ended = (/** @type {unknown} */ code, /** @type {unknown} */ killed) =>
      reject(new Error(`${child.spawnargs.at(2)} ended with ${killed ?? `exit code ${code}`}.`));
    if (child.exitCode !== null || child.signalCode !== null) ended(child.exitCode, child.signalCode);
    child.once("exit", ended);
    child.once("message", (message) => {
      child.off("exit", ended);
      resolve(message);
    });
  });
}

/**
 * @param {ChildProcess} child
 * @param {string} word
 */
async function ask(child, word) {
  const answer = messageOf(child);
  // The end of a process is detected by its exit event.
  child.send(word, () => {});
  return answer;
}

/** @typedef {Standing & { atMs: number }} Sample */

/**
 * Polls the server's state until the time is over.
 * @param {ChildProcess} server
 * @param {LoadLimits} limits
 */
async function watchMemory(server, { durationMs, signal, report }) {
  /** @type {Sample[]} */
  const samples = [];
  const begin = Date.now();
  const everyMs = Math.min(sampleEveryMs, durationMs / (4 * samplesCompared));
  while (Date.now() - begin < durationMs && !signal?.aborted) {
    await wait(everyMs);
    const standing = /** @type {Standing} */ (await ask(server, "standing"));
    samples.push({ ...standing, atMs: Date.now() - begin });
    if (samples.length % reportEvery === 0) report?.(sentenceOf(/** @type {Sample} */ (samples.at(-1))));
  }
  return samples;
}

/** @param {Sample} sample */
function sentenceOf({ atMs, answered, left, residentBytes, heldBytes, open }) {
  const memory = `${megabytes(residentBytes)} resident, ${megabytes(heldBytes)} held`;
  return `${Math.round(atMs / 1000)} s: ${answered} answered, ${left} left by their clients, ${open} open, ${memory}.`;
}

/**
 * @param {readonly Sample[]} samples
 * @param {number} durationMs
 */
function compareMemory(samples, durationMs) {
  const warmMs = Math.min(warmMsMax, durationMs / 2);
  const warm = samples.filter(({ atMs }, index) => atMs >= warmMs || index === samples.length - 1);
  const violations = [];
  const memory = [];
  for (const name of /** @type {const} */ (["residentBytes", "heldBytes"])) {
    const first = median(warm.slice(0, samplesCompared).map((sample) => sample[name]));
    const last = median(warm.slice(-samplesCompared).map((sample) => sample[name]));
    memory.push(`${megabytes(first)} → ${megabytes(last)} ${name === "residentBytes" ? "resident" : "held"}`);
    const factor = name === "residentBytes" ? residentGrowthMax : 1;
    if (last > first * factor + growthBytesMax) violations.push(`Memory has grown: ${memory.at(-1)}.`);
  }
  return { memory: memory.join(", "), violations };
}

/**
 * Tells the server to end under load, and checks that it does so in time and completes its work.
 * @param {ChildProcess} server
 */
async function drain(server) {
  const begin = Date.now();
  const told = messageOf(server);
  const exited = once(server, "exit");
  server.kill("SIGTERM");
  const late = wait(drainMsMax + exitMsMax, "late", { ref: false });
  const [code, killed] = await Promise.race([exited, late.then(() => ["late", null])]);
  const drainMs = Date.now() - begin;
  if (code !== 0) return { drainMs, violations: [`The server did not end in order, but with ${killed ?? code}.`] };
  const { open, cut, failures } = /** @type {Rest} */ (await told);
  const violations = [...failures];
  if (open + cut > 0) violations.push(`${open} requests were not answered, and ${cut} only in part.`);
  return { drainMs, violations };
}

/** @param {readonly Tally[]} tallies */
function doneOf(tallies) {
  /** @type {Record<string, number>} */
  const done = {};
  for (const tally of tallies)
    for (const [name, times] of Object.entries(tally.done)) done[name] = (done[name] ?? 0) + times;
  const list = Object.entries(done).map(([name, times]) => `${name} ${times}`);
  return `Done: ${list.join(", ")}. Checking what is there.`;
}

/** @param {readonly Tally[]} tallies */
function unexpectedIn(tallies) {
  return tallies.flatMap(({ unexpected }) => Object.entries(unexpected).map(([what, times]) => `${times} × ${what}`));
}

/**
 * No run is in progress in a store that no process has open.
 * @param {string} path
 */
async function leftRuns(path) {
  const store = await openSqliteStore({ path });
  try {
    const violations = [];
    let cursor = /** @type {string | null} */ (null);
    do {
      const page = await store.list({ limit: 500, ...(cursor !== null && { cursor }) });
      for (const { header, openRuns } of page.items)
        if (openRuns.length > 0) violations.push(`A run of ${header.id} was not finished.`);
      cursor = page.next;
    } while (cursor !== null);
    return violations;
  } finally {
    await store.close();
  }
}

/**
 * The findings of `skein doctor`.
 * @param {string} path
 * @returns {Promise<string[]>}
 */
function doctor(path) {
  const program = fileURLToPath(new URL("../../dist/cli/skein.js", import.meta.url));
  const args = ["--no-warnings", program, "doctor", "--store", `sqlite:${path}`];
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, stdout, stderr) => {
      resolve(error === null ? [] : [`skein doctor found something: ${stdout}${stderr}`]);
    });
  });
}

/** @param {readonly number[]} values */
function median(values) {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** @param {number} bytes */
function megabytes(bytes) {
  return `${Math.round(bytes / 1_000_000)} MB`;
}
