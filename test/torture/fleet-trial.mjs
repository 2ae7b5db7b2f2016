import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Redis } from "ioredis";
import { startRedis } from "../../scripts/redis.mjs";
import { openAt } from "../faults/programs/open-at.mjs";
import { checkFollowed, checkTakeovers } from "./check-fleet.mjs";
import { checkRuns, entriesOf, linesOf } from "./check-runs.mjs";
import { Fleet } from "./fleet.mjs";
import { FleetPeople } from "./fleet-people.mjs";
import { trials } from "./trials.mjs";

/** Where a fleet can be tried: the stores that can also hold a bell. @type {readonly string[]} */
export const fleetStores = ["postgres", "redis"];

const sizes = { worker: 3, server: 2 };
const rounds = 2;
/** Where nobody dies, none may end either, however busy the machine is. */
const leaseMsBy = { random: 2_000, restart: 20_000 };
const answerMsMaxBy = { random: 4_000, restart: 60_000 };
/** How long it takes at most until someone looks for what nobody rang for: as in real life, and soon. */
const sweepMs = { rare: 30_000, soon: 1_000 };
const pauseMsMax = 4_000;
const serverShare = 0.15;
const frozenShare = 0.25;
const progressEveryMs = 5_000;
const settleMsMax = 60_000;
/** How many takeovers of a hundred may be late on a machine that is busy with other things, where there were enough to tell. */
const latePercentMax = 5;
const takeoversMin = 20;

/**
 * What becomes of a fleet meanwhile: its members are killed and frozen at random, all of them are restarted in order, or
 * nothing; and in the middle, the bell may be emptied.
 * @typedef {object} Harm
 * @property {"random" | "restart"} to
 * @property {boolean} [emptyBell] the bell is on a Redis of its own
 */

/**
 * Lets people use a fleet while harm is done to it, and then looks whether every run came to its end, nothing was done twice,
 * and whoever looked on was told everything once.
 * @param {string} store
 * @param {object} limits
 * @param {number} limits.durationMs
 * @param {number} limits.runsMin
 * @param {number} limits.strikesMin kills and freezes, or restarts of everything
 * @param {number} [limits.sessionsAtOnce]
 * @param {Harm} [limits.harm]
 * @param {AbortSignal} [limits.signal] ends it early
 * @param {(sentence: string) => void} [limits.report]
 */
export async function runFleetTrial(store, limits) {
  const { durationMs, runsMin, strikesMin, sessionsAtOnce = 16, harm = { to: "random" }, signal, report } = limits;
  const trial = trials.find((each) => each.kind === "writers" && each.store === store);
  if (trial === undefined) throw new Error(`There is no store ${store} to try a fleet on.`);
  const place = await trial.open();
  const bell = harm.emptyBell ? await startRedis() : null;
  const folder = mkdtempSync(join(tmpdir(), "skein-torture-"));
  const effects = join(folder, "effects");
  const leaseMs = leaseMsBy[harm.to];
  const settings = { effects, rounds, leaseMs, sweepMs: bell === null ? sweepMs.rare : sweepMs.soon };
  const fleet = new Fleet(place.address, bell?.url ?? place.address, settings);
  const sessions = Array.from({ length: sessionsAtOnce }, (_, index) => `s${index}`);
  const keeper = await openWith(place.address, sessions);
  try {
    await fleet.start(sizes);
    const people = new FleetPeople(fleet, answerMsMaxBy[harm.to], await import("skein/client"));
    const [begin, end] = [Date.now(), Date.now() + durationMs];
    const strikes = () => fleet.counts.kills + fleet.counts.freezes + fleet.counts.restarts;
    const wanted = () =>
      !signal?.aborted && Date.now() < end && (people.runs.length < runsMin || strikes() < strikesMin);
    const used = Promise.all(sessions.map((sessionId) => people.use(sessionId, wanted)));
    let [told, emptied] = [begin, bell === null];
    while (wanted()) {
      if (harm.to === "restart") await fleet.restart();
      else await strike(fleet);
      if (!emptied && (strikes() > strikesMin / 2 || people.runs.length > runsMin / 2)) {
        await empty(bell?.url ?? "");
        emptied = true;
      }
      if (!report || Date.now() - told < progressEveryMs) continue;
      told = Date.now();
      report(`${Math.round((told - begin) / 1000)} s: ${strikes()} strikes, ${people.runs.length} runs.`);
    }
    report?.("Letting the last runs end.");
    const late = await Promise.race([used.then(() => false), wait(settleMsMax, true, { ref: false })]);
    people.leave();
    await used;
    await fleet.stop();
    return await check(keeper.store, { fleet, people, sessions, effects: linesOf(effects), harm, late });
  } finally {
    await fleet.stop();
    await keeper.store.close();
    await bell?.stop();
    await place.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * A store with sessions of several users.
 * @param {string} address
 * @param {readonly string[]} sessions
 */
async function openWith(address, sessions) {
  // What it stands on may only just have been built.
  const { SessionManager } = await import("skein");
  const store = await openAt(address);
  const manager = new SessionManager({ store });
  for (const [index, id] of sessions.entries()) await manager.create({ userId: `user${index % 4}`, id });
  return { store };
}

/** @param {Fleet} fleet */
async function strike(fleet) {
  // A long pause lets a takeover be seen by itself; a short one lets those who take over die as well.
  await wait(Math.random() ** 2 * pauseMsMax);
  const role = Math.random() < serverShare ? "server" : "worker";
  // However short a trial is, somebody freezes.
  if (fleet.counts.freezes === 0 || Math.random() < frozenShare) fleet.freeze(role);
  else fleet.kill(role);
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
 * @param {boolean} told.late whether somebody waited for the end of a run in vain
 */
async function check(store, { fleet, people, sessions, effects, harm, late }) {
  const { runs, failures } = people;
  const strikes = fleet.counts.kills + fleet.counts.freezes + fleet.counts.restarts;
  const checked = await checkRuns(store, { sessions, runs, effects, kills: strikes, rounds });
  /** @type {string[]} */
  const violations = [
    // Who tells deltas may do so in vain for a while when the bell has forgotten everybody.
    ...fleet.wrong.filter((sentence) => !(harm.emptyBell && sentence.includes("RelayError"))),
    ...people.wrong,
    ...checked.violations,
  ];
  if (late) violations.push("Somebody waited for the end of a run in vain.");
  const logs = new Map();
  let [deltas, spoken, whole] = [0, 0, 0];
  for (const sessionId of sessions) {
    const entries = await entriesOf(store, sessionId);
    for (const run of runs.filter((each) => each.sessionId === sessionId)) {
      logs.set(run.runId, entries);
      const followed = checkFollowed(entries, run);
      violations.push(...followed.violations.map((problem) => `Run ${run.runId}: ${problem}`));
      deltas += followed.deltas;
      spoken += followed.rounds;
      whole += followed.wholeRounds;
    }
  }
  const takeovers = checkTakeovers(logs, fleet.strikes, leaseMsBy[harm.to]);
  const { count } = takeovers.alone;
  if (count >= takeoversMin && takeovers.late * 100 > count * latePercentMax)
    violations.push(`${takeovers.late} of ${count} takeovers came too late.`);
  if (harm.to === "restart") {
    const failed = [...failures].filter(([how]) => how !== "ECONNREFUSED");
    violations.push(...failed.map(([how, count]) => `${count} requests failed with ${how}.`));
    if (checked.interrupted > 0) violations.push(`${checked.interrupted} calls were interrupted.`);
  }
  const told = { deltas, "whole texts": `${whole} of ${spoken}` };
  const took = { takeovers: describe(takeovers.all), "by themselves": describe(takeovers.alone), late: takeovers.late };
  const failed = [...failures].map(([how, count]) => `${count} ${how}`).join(", ");
  return { ...fleet.counts, runs: runs.length, ...checked, ...told, ...took, failed, violations };
}

/** @param {{ count: number, p50: number, p95: number, p99: number, max: number }} spread */
function describe({ count, p50, p95, p99, max }) {
  return `${count}: ${p50}, ${p95}, ${p99}, ${max} ms`;
}
