/** @typedef {import("skein").Entry} Entry */
/** @typedef {import("./fleet-people.mjs").FollowedRun} FollowedRun */
/** @typedef {{ seq: number, type: string, message?: unknown }} Lasting */

/** The longest time after the end of a lease until another worker continues. */
const takeoverMs = 1_000;

/**
 * Compares the events that readers got about a run with its session's log.
 * @param {readonly Entry[]} entries of the session
 * @param {FollowedRun} run
 * @returns {{ violations: readonly string[], deltas: number, rounds: number, wholeRounds: number, dropped: number }}
 */
export function checkFollowed(entries, { runId, seen, streams }) {
  /** @type {string[]} */
  const violations = [];
  /** @type {Lasting[]} */
  const told = [];
  let [last, text, deltas, rounds, wholeRounds, dropped] = [[-1, 0], "", 0, 0, 0, 0];
  // The stream of the last recorded event, and whether missing events were reported since.
  let [since, isTold] = [-1, false];
  for (const { id, event, stream } of seen) {
    if (event.type === "events-dropped") {
      dropped += event.count;
      isTold = true;
      continue;
    }
    const [seq = -1, , delta = 0] = id.split(".").map(Number);
    const [lastSeq = -1, lastDelta = 0] = last;
    if (seq < lastSeq || (seq === lastSeq && delta <= lastDelta)) violations.push(`event ${id} came after ${last}.`);
    last = [seq, delta];
    if (delta === 0) told.push({ seq, type: event.type, ...("message" in event ? { message: event.message } : {}) });
    if (event.type === "text-delta") {
      text += event.text;
      deltas += 1;
    }
    // A reader that joins in the middle gets later live events only.
    const isLive = Date.parse(entries[seq]?.timestamp ?? "") > (streams[stream] ?? 0);
    const isOneStream = since === stream && isLive;
    if (delta === 0) since = stream;
    // The worker that continues repeats the lost round.
    if (event.type === "run-started") [text, isTold] = ["", false];
    if (event.type !== "round-finished") continue;
    const whole = String(event.message.content);
    if (isOneStream && text !== whole && !isTold)
      violations.push(`only "${text}" was told of "${whole}" before ${id}, and not that anything is missing.`);
    isTold = false;
    if (!isWithin(text, whole)) violations.push(`"${text}" was told of "${whole}" at ${id}.`);
    rounds += 1;
    wholeRounds += Number(text === whole);
    text = "";
  }
  const logged = lastingOf(entries, runId);
  const [one, other] = [told, logged].map((events) => JSON.stringify(events));
  if (one !== other) violations.push(`its reader was told ${namesOf(told)}, and the log has ${namesOf(logged)}.`);
  return { violations, deltas, rounds, wholeRounds, dropped };
}

/**
 * The recorded events of a run; between its request and its end, all messages of its session belong to it.
 * @param {readonly Entry[]} entries
 * @param {string} runId
 * @returns {Lasting[]}
 */
function lastingOf(entries, runId) {
  const from = entries.findIndex(({ id }) => id === `run:${runId}`);
  const to = entries.findIndex((entry) => entry.type === "run" && entry.runId === runId && entry.phase !== "started");
  return entries.slice(from, to === -1 ? entries.length : to + 1).flatMap((entry) => {
    const { seq } = entry;
    if (entry.type === "run") return { seq, type: entry.phase === "started" ? "run-started" : `run-${entry.phase}` };
    if (entry.type === "run_parked") return { seq, type: "run-parked" };
    if (entry.type === "approval") return entry.decision === undefined ? { seq, type: "approval-required" } : [];
    if (entry.type !== "message") return [];
    const { message } = entry;
    if (message.role === "tool") return { seq, type: "tool-finished", message };
    return message.role === "assistant" ? { seq, type: "round-finished", message } : [];
  });
}

/**
 * How long runs took to continue after a fault of their worker, and which of them were late although no other fault
 * happened in the meantime.
 * @param {ReadonlyMap<string, readonly Entry[]>} logs by run
 * @param {readonly import("./fleet.mjs").Strike[]} strikes
 * @param {object} about
 * @param {number} about.leaseMs
 * @param {readonly import("./fleet.mjs").Lag[]} about.lags
 * @param {readonly { fromMs: number, toMs: number }[]} about.outages when the store or the queue was unreachable
 */
export function checkTakeovers(logs, strikes, { leaseMs, lags, outages }) {
  /** @type {string[]} */
  const lateOnes = [];
  const windowMs = leaseMs + takeoverMs;
  /** @param {number} atMs */
  const lagAt = (atMs) =>
    Math.max(0, ...lags.filter((lag) => isIn(lag.atMs, atMs, atMs + windowMs + 1000)).map(({ ms }) => ms));
  /** @param {number} atMs */
  const isOut = (atMs) => outages.some(({ fromMs, toMs }) => fromMs < atMs + windowMs && toMs > atMs);
  /** @type {number[]} */
  const alone = [];
  /** @type {number[]} */
  const all = [];
  for (const [index, strike] of strikes.entries()) {
    const next = strikes[index + 1]?.atMs ?? Number.POSITIVE_INFINITY;
    for (const runId of strike.runs) {
      const ms = takeoverOf(logs.get(runId) ?? [], runId, strike.atMs);
      if (ms === null) continue;
      all.push(ms);
      if (!strike.alone || next - strike.atMs <= windowMs || isOut(strike.atMs)) continue;
      alone.push(ms);
      const lagMs = lagAt(strike.atMs);
      if (ms <= windowMs + lagMs) continue;
      const at = new Date(strike.atMs).toISOString();
      lateOnes.push(`Run ${runId} went on ${ms} ms after harm at ${at}, with event loops ${lagMs} ms late.`);
    }
  }
  return { all: spreadOf(all), alone: spreadOf(alone), late: lateOnes.length, lateOnes };
}

/**
 * @param {number} ms
 * @param {number} fromMs
 * @param {number} toMs
 */
function isIn(ms, fromMs, toMs) {
  return ms >= fromMs && ms <= toMs;
}

/**
 * The time from a moment until the next claim of a run; null if there is none, or if the run has ended.
 * @param {readonly Entry[]} entries
 * @param {string} runId
 * @param {number} atMs
 */
function takeoverOf(entries, runId, atMs) {
  const facts = entries.filter(
    (entry) => (entry.type === "run" || entry.type === "run_parked") && entry.runId === runId,
  );
  const next = facts.findIndex(({ timestamp }) => Date.parse(timestamp) > atMs);
  const [before, after] = [facts[next - 1], facts[next]];
  if (before?.type !== "run" || before.phase !== "started") return null;
  // A holder's last write may really precede the fault.
  if (after?.type !== "run" || after.phase !== "started") return null;
  // The worker had lost the run before, if another continued it after that.
  const goesOn = (/** @type {Entry} */ { type, timestamp, seq }) =>
    (type === "message" || type === "effect") && Date.parse(timestamp) > atMs && seq < after.seq;
  if (entries.some((entry) => goesOn(entry) && !isStartOf(entries, entry, after))) return null;
  return Date.parse(after.timestamp) - atMs;
}

/**
 * Whether an entry was appended together with a start, like the end of an earlier run.
 * @param {readonly Entry[]} entries
 * @param {Entry} entry
 * @param {Entry} start
 */
function isStartOf(entries, entry, start) {
  return entries.slice(entry.seq, start.seq + 1).every(({ timestamp }) => timestamp === start.timestamp);
}

/** @param {readonly number[]} times */
function spreadOf(times) {
  const sorted = [...times].sort((one, other) => one - other);
  const at = (/** @type {number} */ share) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: sorted.at(-1) ?? 0 };
}

/**
 * Whether a text is a whole one with pieces left out.
 * @param {string} text
 * @param {string} whole
 */
function isWithin(text, whole) {
  let from = 0;
  for (const letter of text) {
    from = whole.indexOf(letter, from) + 1;
    if (from === 0) return false;
  }
  return true;
}

/** @param {readonly Lasting[]} events */
function namesOf(events) {
  return events.map(({ seq, type }) => `${seq} ${type}`).join(", ");
}
