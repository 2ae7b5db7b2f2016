import { readFileSync } from "node:fs";

const claimsMax = 5;

/** @typedef {import("skein").Entry} Entry */
/** @typedef {{ callId: string, round: number, name: string, error: string | null }} Called */

/**
 * Compares the log of runs with the executed calls.
 * @param {import("skein").SessionStore} store
 * @param {object} told
 * @param {readonly string[]} told.sessions
 * @param {readonly { sessionId: string, runId: string }[]} told.runs
 * @param {readonly string[]} told.effects lines of run, round and tool
 * @param {number} told.kills
 * @param {number} told.rounds
 */
export async function checkRuns(store, { sessions, runs, effects, kills, rounds }) {
  /** @type {string[]} */
  const violations = [];
  const done = countsOf(effects);
  for (const [line, count] of done) if (count > 1) violations.push(`"${line}" was done ${count} times.`);
  let [interrupted, givenUp] = [0, 0];
  for (const sessionId of sessions) {
    const entries = await entriesOf(store, sessionId);
    for (const { runId } of runs.filter((run) => run.sessionId === sessionId)) {
      const checked = checkRun(entries, runId, rounds, (round, name) => done.get(`${runId} ${round} ${name}`) ?? 0);
      interrupted += checked.interrupted;
      givenUp += Number(checked.givenUp);
      violations.push(...checked.violations.map((problem) => `Run ${runId}: ${problem}`));
    }
  }
  // The killed process may have had a run in every session.
  if (interrupted > kills * sessions.length)
    violations.push(`${interrupted} calls were interrupted by ${kills} kills.`);
  return { effects: effects.length, interrupted, givenUp, violations };
}

/**
 * @param {readonly Entry[]} entries
 * @param {string} runId
 * @param {number} rounds
 * @param {(round: number, name: string) => number} doneIn how often a call was done
 */
function checkRun(entries, runId, rounds, doneIn) {
  /** @type {string[]} */
  const violations = [];
  const phases = entries.flatMap((entry) => (entry.type === "run" && entry.runId === runId ? entry : []));
  const ends = phases.filter(({ phase }) => phase !== "started");
  const cancelled = entries.some((entry) => entry.type === "cancel" && entry.runId === runId);
  if (ends.length > 1) violations.push(`it ended ${ends.length} times.`);
  // A run fails after five claims in a row without progress; kills may cause that, so it is counted separately.
  const givenUp = ends[0]?.phase === "failed" && claimsBefore(entries, ends[0]) >= claimsMax;
  if (!cancelled && !givenUp && ends[0]?.phase !== "finished")
    violations.push(`it ended as ${ends[0]?.phase ?? "nothing"} (${JSON.stringify(ends[0]?.error)}).`);
  const rows = rowsOf(entries, runId);
  const inputs = rows.filter(({ message }) => message.role === "user");
  if (phases.length > 0 && inputs.length !== 1) violations.push(`its input is there ${inputs.length} times.`);
  const calls = calledIn(rows, violations);
  let interrupted = 0;
  for (const { round, name, error } of calls) {
    if (name === "look") continue;
    const count = doneIn(round, name);
    if (error === "interrupted") interrupted += 1;
    else if (count !== (error === null ? 1 : 0))
      violations.push(`call ${name} of round ${round} was done ${count} times and says ${error ?? "ok"}.`);
  }
  const answers = rows.filter(({ message }) => message.role === "assistant" && message.content === "done").length;
  if (ends[0]?.phase === "finished" && (answers !== 1 || calls.length !== rounds * 3)) {
    violations.push(`it finished with ${answers} answers and ${calls.length} results.`);
  }
  return { violations, interrupted, givenUp };
}

/**
 * How often a run was begun before its end without a row in between; the time that brought the last row counts, too.
 * @param {readonly Entry[]} entries
 * @param {Extract<Entry, { type: "run" }>} end
 */
function claimsBefore(entries, { seq, runId }) {
  const before = entries.slice(0, seq);
  const row = before.findLastIndex(({ type }) => type === "message");
  const isStart = (/** @type {Entry} */ entry) =>
    entry.type === "run" && entry.runId === runId && entry.phase === "started";
  return before.slice(row).filter(isStart).length + Number(before.slice(0, row).some(isStart));
}

/**
 * The rows of a run on the active path: from its input up to the next run's.
 * @param {readonly Entry[]} entries
 * @param {string} runId
 */
function rowsOf(entries, runId) {
  const path = activePath(entries).filter((entry) => entry.type === "message");
  const from = path.findIndex(({ id }) => id === `run:${runId}/input`);
  if (from === -1) return [];
  const next = path.findIndex(({ message }, index) => index > from && message.role === "user");
  return path.slice(from, next === -1 ? path.length : next);
}

/** @param {readonly Entry[]} entries */
function activePath(entries) {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const nodes = new Set(["message", "variables", "compaction", "custom"]);
  const path = [];
  // No process moves the leaf in this trial, so the leaf is the last node.
  for (let entry = entries.findLast(({ type }) => nodes.has(type)); entry; entry = byId.get(entry.parentId ?? ""))
    path.unshift(entry);
  return /** @type {Extract<Entry, { type: "message" }>[]} */ (path);
}

/**
 * The calls with how each was answered, which must follow them directly.
 * @param {readonly Extract<Entry, { type: "message" }>[]} rows
 * @param {string[]} violations
 * @returns {Called[]}
 */
function calledIn(rows, violations) {
  /** @type {Called[]} */
  const called = [];
  for (const [index, { message }] of rows.entries()) {
    if (message.role !== "assistant" || message.toolCalls === undefined) continue;
    for (const [offset, call] of message.toolCalls.entries()) {
      const answer = rows[index + 1 + offset]?.message;
      // A cancelled run leaves its remaining work undone.
      if (answer === undefined) continue;
      if (answer.role !== "tool" || answer.toolCallId !== call.id) {
        violations.push(`call ${call.id} of entry ${rows[index]?.seq} has no result at its place in ${namesOf(rows)}.`);
        continue;
      }
      const { round } = JSON.parse(call.arguments);
      called.push({
        callId: call.id,
        round,
        name: call.name,
        error: answer.isError === true ? kindOf(answer.content) : null,
      });
    }
  }
  return called;
}

/** @param {readonly Extract<Entry, { type: "message" }>[]} rows */
function namesOf(rows) {
  return rows
    .map(
      ({ seq, message }) =>
        `${seq} ${message.role === "tool" ? `${message.toolCallId} ${message.content}` : message.role}`,
    )
    .join(", ");
}

/** @param {unknown} content */
function kindOf(content) {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  return /interrupted|denied|no_room|timeout/.exec(text)?.[0] ?? text;
}

/**
 * The log of a session.
 * @param {import("skein").SessionStore} store
 * @param {string} sessionId
 */
export async function entriesOf(store, sessionId) {
  /** @type {Entry[]} */
  const entries = [];
  for await (const entry of store.read(sessionId)) entries.push(entry);
  return entries;
}

/**
 * The whole lines of a file, if there is one.
 * @param {string} path
 */
export function linesOf(path) {
  try {
    return readFileSync(path, "utf8").split("\n").slice(0, -1);
  } catch {
    return [];
  }
}

/** @param {readonly string[]} lines */
function countsOf(lines) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}
