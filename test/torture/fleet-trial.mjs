import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Redis } from "ioredis";
import pg from "pg";
import { startPostgres } from "../../scripts/postgres.mjs";
import { startRedis } from "../../scripts/redis.mjs";
import { SetupError } from "../../scripts/run.mjs";
import { openAt } from "../faults/programs/open-at.mjs";
import { checkFollowed, checkTakeovers } from "./check-fleet.mjs";
import { checkRuns, entriesOf, linesOf } from "./check-runs.mjs";
import { Fleet } from "./fleet.mjs";
import { FleetPeople } from "./fleet-people.mjs";

/** The stores on which a fleet can be tested: those that can also hold a queue. @type {readonly string[]} */
export const fleetStores = ["postgres", "redis"];
/** The same, and a store on PostgreSQL with a queue on Redis. @type {readonly string[]} */
export const fleetPlaces = [...fleetStores, "postgres and redis"];

const sizesBy = {
  random: { worker: 3, server: 2 },
  // No member is killed, so two of each are enough for one to remain.
  restart: { worker: 2, server: 2 },
  servers: { worker: 3, server: 2 },
};
const rounds = 2;
/** If no worker dies, no run may fail, however busy the machine is. */
const leaseMsBy = { random: 2_000, restart: 20_000, servers: 2_000 };
const answerMsMaxBy = { random: 4_000, restart: 60_000, servers: 6_000 };
/** How long a server that is restarted is away at most. */
const awayMsMax = 2_000;
/** How long members may take to reconnect after that. */
const backMs = 5_000;
/** The configuration of a Redis that must lose nothing when it is killed. */
const durable = ["--appendonly", "yes", "--appendfsync", "always"];
/** The messages of members about servers that are or were down. */
const ofOutage =
  /STORE_FAILED|StoreUnreachableError|has failed, and is tried again|cannot be reached|LEASE_LOST|LeaseLostError|RelayError|ECONN|onnection|ocket|client is|timeout|57P0|Missing lock|The database system/;
/** The message of a member that was frozen while it connected: the connection has timed out when it resumes. */
const ofFreeze = /is tried again: timeout exceeded when trying to connect/;
/** The longest time until a sweep finds runs without a notification: short, as in production. */
const sweepMsBy = { rare: 30_000, soon: 1_000 };
const pauseMsMax = 4_000;
const serverShare = 0.15;
const frozenShare = 0.25;
const progressEveryMs = 5_000;
/** Time limits for the last runs: without progress, and in total. */
const stillMsMax = 60_000;
const settleMsMax = 300_000;
/** The time limit of each other part of a trial: the start, a fault, the shutdown, and the check. */
const stepMsMax = 180_000;
/** In a long trial with server faults, every second part has only kills, so that takeovers can be timed. */
const partMsMax = 120_000;
const partsMin = 4;
/** The pause between two kills, long enough for a takeover to finish. */
const apartMs = 3_500;
/** How long the first kill after that waits for starting workers. */
const allThereMsMax = 30_000;
/** The percentage of takeovers that may be late on a busy machine; applies from a minimum number of takeovers. */
const latePercentMax = 5;
const takeoversMin = 20;

/**
 * The faults of a trial. `random`: members are killed and frozen. `restart`: all members are restarted in order.
 * `servers`: members are also cut off, the servers of store and queue are restarted, notifications are deleted, and
 * connections are ended. In the middle of the trial, the queue may be emptied.
 * @typedef {object} Harm
 * @property {"random" | "restart" | "servers"} to
 * @property {boolean} [emptyQueue] the queue is on a separate Redis
 */

/**
 * Lets users work with a fleet during faults, and then checks that every run ended, no effect was repeated, and every
 * reader got each event once.
 * @param {string} store
 * @param {object} limits
 * @param {number} limits.durationMs
 * @param {number} limits.runsMin
 * @param {number} limits.strikesMin kills and freezes, or restarts of everything
 * @param {number} [limits.sessionsAtOnce]
 * @param {Harm} [limits.harm]
 * @param {boolean} [limits.sweepsSoon] whether workers look for runs that nobody notified them of every second, as in a
 * short trial
 * @param {AbortSignal} [limits.signal] ends it early
 * @param {(sentence: string) => void} [limits.report]
 */
export async function runFleetTrial(store, limits) {
  const { durationMs, runsMin, strikesMin, sessionsAtOnce = 16, harm = { to: "random" }, signal, report } = limits;
  const { sweepsSoon = harm.emptyQueue === true } = limits;
  const sweepMs = sweepsSoon ? sweepMsBy.soon : sweepMsBy.rare;
  const { place, queue, servers } = await openPlace(store, harm);
  const folder = mkdtempSync(join(tmpdir(), "skein-torture-"));
  const effects = join(folder, "effects");
  const leaseMs = leaseMsBy[harm.to];
  const settings = { effects, rounds, leaseMs, sweepMs };
  const fleet = new Fleet(place.url, queue?.url ?? place.url, settings, harm.to === "servers");
  const harmed = new HarmedServers(servers, queue?.url ?? place.url, sweepMs);
  const sessions = Array.from({ length: sessionsAtOnce }, (_, index) => `s${index}`);
  const keeper = await openWith(place.url, sessions);
  try {
    await within("The start of the fleet", fleet.start(sizesBy[harm.to]));
    const people = new FleetPeople(fleet, answerMsMaxBy[harm.to], await import("skein/client"));
    const [begin, end] = [Date.now(), Date.now() + durationMs];
    const strikes = () => strikesOf(fleet) + harmed.count;
    const wanted = () =>
      !signal?.aborted && Date.now() < end && (people.runs.length < runsMin || strikes() < strikesMin);
    const used = Promise.all(sessions.map((sessionId) => people.use(sessionId, wanted)));
    const partMs = Math.min(partMsMax, durationMs / partsMin);
    const isQuiet = () => harm.to === "servers" && Math.floor((Date.now() - begin) / partMs) % 2 === 1;
    let [told, emptied] = [begin, !harm.emptyQueue];
    while (wanted()) {
      if (harm.to === "restart") await restartAll(fleet);
      else await within("A strike", isQuiet() ? killApart(fleet) : strikeAny(fleet, harm, harmed));
      if (!emptied && (strikes() > strikesMin / 2 || people.runs.length > runsMin / 2)) {
        // The state of a dead worker is now only in the log.
        emptied = fleet.kill("worker");
        if (emptied) await empty(queue?.url ?? "");
      }
      if (!report || Date.now() - told < progressEveryMs) continue;
      told = Date.now();
      report(`${Math.round((told - begin) / 1000)} s: ${strikes()} strikes, ${people.runs.length} runs.`);
    }
    report?.("Letting the last runs end.");
    const late = await Promise.race([used.then(() => false), untilStill(keeper.store, sessions, signal)]);
    if (signal?.aborted) {
      people.leave();
      throw new SetupError("Stopped before the end.");
    }
    // Checked before the shutdown of the fleet changes which runs wait.
    const waiting = late ? await waitingIn(keeper.store, people.runs) : [];
    people.leave();
    // The runs that someone waited for in vain say why the others do not end, so they are part of the error.
    await within("Those who use the fleet", used).catch((error) => {
      throw new Error([error.message, ...waiting].join(" "), { cause: error });
    });
    await within("The end of the fleet", fleet.stop());
    const checking = check(keeper.store, { fleet, people, sessions, effects: linesOf(effects), harm, waiting, harmed });
    return await within("The check", checking);
  } finally {
    await fleet.abort();
    await keeper.store.close();
    for (const server of servers) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Awaits one part of a trial; fails if it takes too long.
 * @template T
 * @param {string} what
 * @param {Promise<T>} part
 * @returns {Promise<T>}
 */
async function within(what, part) {
  const timer = new AbortController();
  const late = wait(stepMsMax, null, { signal: timer.signal }).then(() => {
    throw new Error(`${what} took longer than ${stepMsMax / 1000} s.`);
  });
  try {
    return await Promise.race([part, late]);
  } finally {
    timer.abort();
    late.catch(() => {});
  }
}

/**
 * Resolves to true when nothing was appended to any session for a minute, or the last runs took too long, or someone stops it.
 * @param {import("skein").SessionStore} store
 * @param {readonly string[]} sessions
 * @param {AbortSignal} [signal]
 */
async function untilStill(store, sessions, signal) {
  const begin = Date.now();
  let [grownAt, entries] = [begin, 0];
  while (!signal?.aborted && Date.now() - grownAt < stillMsMax && Date.now() - begin < settleMsMax) {
    await wait(1000, null, { ref: false });
    const heads = await store.heads(sessions);
    const now = heads.reduce((sum, head) => sum + (head?.version ?? 0), 0);
    if (now > entries) [grownAt, entries] = [Date.now(), now];
  }
  return true;
}

/**
 * The runs that have not ended, and the position of each in the log.
 * @param {import("skein").SessionStore} store
 * @param {readonly import("./fleet-people.mjs").FollowedRun[]} runs
 */
async function waitingIn(store, runs) {
  const sentences = [];
  for (const { sessionId, runId, seen } of runs.filter(({ ended }) => !ended)) {
    const head = await store.head(sessionId);
    const open = head?.openRuns.find((run) => run.runId === runId);
    const holder = await store.leaseOf(sessionId);
    const told = JSON.stringify(seen.slice(-3).map(({ id, event }) => `${id} ${event.type}`));
    sentences.push(
      `Somebody waited for run ${runId} in vain: ${JSON.stringify(open ?? "it has ended")}, held by ${JSON.stringify(holder)}, told ${told}.`,
    );
  }
  return sentences;
}

/**
 * The servers of store and queue; no queue if the store's server holds it.
 * @param {string} store
 * @param {Harm} harm
 */
async function openPlace(store, harm) {
  if (!fleetPlaces.includes(store)) throw new Error(`There is no store ${store} to try a fleet on.`);
  const place = await (store === "redis" ? startRedis(durable) : startPostgres());
  const queue = harm.emptyQueue || store === "postgres and redis" ? await startRedis() : null;
  return { place, queue, servers: [place, ...(queue === null ? [] : [queue])] };
}

/** The servers of a fleet, and the faults injected into them. */
class HarmedServers {
  count = 0;
  /** When the store or the queue was unreachable. @type {{ fromMs: number, toMs: number }[]} */
  outages = [];
  #servers;
  #queueUrl;
  #sweepMs;

  /**
   * @param {readonly (import("../../scripts/test-server.mjs").TestServer & { readonly url: string })[]} servers
   * @param {string} queueUrl
   * @param {number} sweepMs
   */
  constructor(servers, queueUrl, sweepMs) {
    this.#servers = servers;
    this.#queueUrl = queueUrl;
    this.#sweepMs = sweepMs;
  }

  /** Ends one of them in order or by `kill -9`, and starts it again. */
  async restart() {
    const server = this.#servers[Math.floor(Math.random() * this.#servers.length)];
    await this.#outage(async () => {
      if (Math.random() < 0.5) server?.crash();
      await server?.halt();
      await wait(Math.random() * awayMsMax);
      await server?.resume();
    });
  }

  /** Ends all connections to them. */
  async terminate() {
    await this.#outage(async () => {
      for (const { url } of this.#servers) await (url.startsWith("redis:") ? endClients(url) : endBackends(url));
    });
  }

  /** Removes all notifications; a run whose notification is lost is found by the next sweep. */
  async empty() {
    const url = this.#queueUrl;
    await this.#outage(() => (url.startsWith("redis:") ? removeRings(url) : removeJobs(url)), this.#sweepMs + backMs);
  }

  /**
   * @param {() => Promise<void>} act
   * @param {number} [afterMs] how long the recovery takes afterwards
   */
  async #outage(act, afterMs = backMs) {
    this.count += 1;
    const outage = { fromMs: Date.now(), toMs: Number.POSITIVE_INFINITY };
    this.outages.push(outage);
    await act();
    outage.toMs = Date.now() + afterMs;
  }
}

/** @param {string} url */
async function endClients(url) {
  const client = new Redis(url);
  await client.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  client.disconnect();
}

/** If the store is there, too, its keys are kept. @param {string} url */
async function removeRings(url) {
  const client = new Redis(url);
  for (let cursor = "0", first = true; first || cursor !== "0"; first = false) {
    const [next, keys] = await client.scan(cursor, "MATCH", "{skein}:runs.*", "COUNT", 1000);
    if (keys.length > 0) await client.unlink(...keys);
    cursor = next;
  }
  client.disconnect();
}

/**
 * @param {string} url
 * @param {string} sql
 */
async function query(url, sql) {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  await client.query(sql);
  await client.end();
}

/** @param {string} url */
function endBackends(url) {
  const others = "pid <> pg_backend_pid() AND backend_type = 'client backend'";
  return query(url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${others}`);
}

/** @param {string} url */
function removeJobs(url) {
  return query(url, "DELETE FROM bullmq.job");
}

/** @param {Fleet} fleet */
function strikesOf({ counts }) {
  return counts.kills + counts.freezes + counts.restarts + counts.cuts;
}

/**
 * A store with sessions of several users.
 * @param {string} address
 * @param {readonly string[]} sessions
 */
async function openWith(address, sessions) {
  // Imported here, because dist/ may have been built by this process.
  const { SessionManager } = await import("skein");
  const store = await openAt(address);
  const manager = new SessionManager({ store });
  for (const [index, id] of sessions.entries()) await manager.create({ userId: `user${index % 4}`, id });
  return { store };
}

/** @param {Fleet} fleet */
async function strike(fleet) {
  // A long pause shows a takeover by itself; a short one also kills the workers that take over.
  await wait(Math.random() ** 2 * pauseMsMax);
  const role = Math.random() < serverShare ? "server" : "worker";
  // Even a short trial has a freeze.
  if (fleet.counts.freezes === 0 || Math.random() < frozenShare) fleet.freeze(role);
  else fleet.kill(role);
}

/**
 * @param {Fleet} fleet
 * @param {Harm} harm
 * @param {HarmedServers} servers
 */
function strikeAny(fleet, harm, servers) {
  return harm.to === "random" || Math.random() < 0.5 ? strike(fleet) : strikeServers(fleet, servers);
}

/** Restarts all members. The time limit is for each member, since a busy machine needs minutes for all. @param {Fleet} fleet */
async function restartAll(fleet) {
  const steps = fleet.restart();
  while (!(await within("The restart of a member", steps.next())).done);
}

/** Kills a worker, and gives the others, once all are running, the time to take over its runs. @param {Fleet} fleet */
async function killApart(fleet) {
  await wait(apartMs + Math.random() * 1000);
  for (const until = Date.now() + allThereMsMax; fleet.workers < sizesBy.servers.worker && Date.now() < until; )
    await wait(100);
  fleet.kill("worker");
}

/**
 * @param {Fleet} fleet
 * @param {HarmedServers} servers
 */
async function strikeServers(fleet, servers) {
  await wait(Math.random() ** 2 * pauseMsMax);
  const act = Math.random();
  if (act < 0.5) fleet.cut(Math.random() < serverShare ? "server" : "worker");
  else if (act < 0.75) await servers.restart();
  else if (act < 0.9) await servers.terminate();
  else await servers.empty();
}

/** @param {string} url */
async function empty(url) {
  const client = new Redis(url);
  await client.flushall();
  client.disconnect();
}

/**
 * @param {import("skein").SessionStore} store
 * @param {object} told
 * @param {Fleet} told.fleet
 * @param {FleetPeople} told.people
 * @param {readonly string[]} told.sessions
 * @param {readonly string[]} told.effects
 * @param {Harm} told.harm
 * @param {readonly string[]} told.waiting for which runs somebody waited in vain
 * @param {HarmedServers} told.harmed
 */
async function check(store, { fleet, people, sessions, effects, harm, waiting, harmed }) {
  const { runs, failures } = people;
  const strikes = strikesOf(fleet) + harmed.count;
  const checked = await checkRuns(store, { sessions, runs, effects, kills: strikes, rounds });
  /** @type {string[]} */
  const violations = [
    // A publisher may send deltas in vain for a while after the queue has lost all subscriptions.
    ...fleet.wrong.filter(
      (sentence) =>
        !(harm.emptyQueue && sentence.includes("RelayError")) &&
        !(harm.to === "random" && ofFreeze.test(sentence)) &&
        !(harm.to === "servers" && ofOutage.test(sentence)),
    ),
    ...people.wrong,
    ...checked.violations,
  ];
  violations.push(...waiting);
  const logs = new Map();
  let [deltas, spoken, whole, dropped] = [0, 0, 0, 0];
  for (const sessionId of sessions) {
    const entries = await entriesOf(store, sessionId);
    for (const run of runs.filter((each) => each.sessionId === sessionId)) {
      logs.set(run.runId, entries);
      const followed = checkFollowed(entries, run);
      violations.push(...followed.violations.map((problem) => `Run ${run.runId}: ${problem}`));
      deltas += followed.deltas;
      spoken += followed.rounds;
      whole += followed.wholeRounds;
      dropped += followed.dropped;
    }
  }
  const { lags, strikes: struck } = fleet;
  const about = { leaseMs: leaseMsBy[harm.to], lags, outages: harmed.outages };
  const takeovers = checkTakeovers(logs, struck, about);
  const { count } = takeovers.alone;
  if (count >= takeoversMin && takeovers.late * 100 > count * latePercentMax)
    violations.push(`${takeovers.late} of ${count} takeovers came too late.`);
  if (harm.to === "restart") {
    const failed = [...failures].filter(([how]) => how !== "ECONNREFUSED");
    violations.push(...failed.map(([how, count]) => `${count} requests failed with ${how}.`));
    if (checked.interrupted > 0) violations.push(`${checked.interrupted} calls were interrupted.`);
  }
  for (const sentence of takeovers.lateOnes) console.log(sentence);
  const told = { deltas, dropped, "whole texts": `${whole} of ${spoken}`, "server faults": harmed.count };
  const { p50, max } = takeovers.alone;
  const timed = `${count}, median ${p50} ms, largest ${max} ms`;
  const took = { takeovers: describe(takeovers.all), "timed takeovers": timed, late: takeovers.late };
  const failed = [...failures].map(([how, count]) => `${count} ${how}`).join(", ");
  return { ...fleet.counts, runs: runs.length, ...checked, ...told, ...took, failed, violations };
}

/** @param {{ count: number, p50: number, p95: number, p99: number, max: number }} spread */
function describe({ count, p50, p95, p99, max }) {
  return `${count}: ${p50}, ${p95}, ${p99}, ${max} ms`;
}
