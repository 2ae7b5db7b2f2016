/** @typedef {import("skein/client").Client} Client */

/**
 * A session of one user, and what was acknowledged in it.
 * @typedef {{ id: string, acknowledged: Set<string> }} OwnSession
 */

/**
 * A user who performs acts in sequence, with sessions that no one else writes to.
 * @typedef {object} User
 * @property {Client} client
 * @property {string} url
 * @property {AbortSignal} signal ends streams when the server is gone
 * @property {OwnSession[]} sessions
 * @property {(prefix: string) => string} newId
 */

/** A violated promise. */
export class Wrong extends Error {}

const sessionsMax = 4;
const acknowledgedMax = 60;
const watchedTurns = 3;
/** Even on a busy machine, appended entries become visible and started runs end. */
const seenMsMax = 15_000;
const runMsMax = 60_000;
const words = "session entry append branch merge leaf context token model answer".split(" ");

/** All acts of a user. @type {Readonly<Record<string, (user: User) => Promise<void>>>} */
export const acts = { create, turn, append, read, look, fork, checkpoint, run, contend, watch, refused, verify };

/** @param {User} user */
async function create(user) {
  const { header } = await user.client.sessions.create({ name: user.newId("session") });
  user.sessions.push({ id: header.id, acknowledged: new Set() });
  const oldest = user.sessions.length > sessionsMax ? user.sessions.shift() : undefined;
  if (oldest === undefined) return;
  await check(user, oldest);
  await user.client.sessions.delete(oldest.id);
}

/** @param {User} user */
async function turn(user) {
  await say(user, await sessionOf(user));
}

/** @param {User} user */
async function append(user) {
  const session = await sessionOf(user);
  const ids = [user.newId("a"), user.newId("b")];
  const entries = ids.map((id) => ({ type: "message", id, message: { role: "user", content: textOf(8) } }));
  const request = /** @type {import("skein/client").NewEntries} */ ({ entries });
  const first = await user.client.sessions.append(session.id, request);
  for (const id of ids) session.acknowledged.add(id);
  const again = await user.client.sessions.append(session.id, request);
  if (again.version !== first.version) throw new Wrong("A retry of an append has appended.");
}

/** @param {User} user */
async function read(user) {
  const { id } = await sessionOf(user);
  const page = await user.client.sessions.entries(id, { limit: 100 });
  if (page.items.some(({ seq }, index) => seq !== index)) throw new Wrong("A page has a gap.");
}

/** @param {User} user */
async function look(user) {
  const { client } = user;
  const { id } = await sessionOf(user);
  await client.sessions.state(id);
  await client.sessions.context(id);
  await client.sessions.tree(id);
  await client.sessions.list({ limit: 20 });
  await client.search(words.slice(0, 2).join(" "), { limit: 5 });
  await (await client.sessions.exportFile(id, { format: "markdown" })).text();
}

/** @param {User} user */
async function fork(user) {
  const { sessions } = user.client;
  const session = await sessionOf(user);
  const { header } = await sessions.fork(session.id, { branchName: user.newId("branch") });
  const branch = { id: header.id, acknowledged: new Set() };
  await say(user, branch);
  const merged = await sessions.merge(session.id, { branchId: branch.id });
  if (merged.appended.length !== 1) throw new Wrong(`A branch of 1 turn was merged as ${merged.appended.length}.`);
  await sessions.delete(branch.id);
}

/** @param {User} user */
async function checkpoint(user) {
  const { checkpoints } = user.client;
  const session = await sessionOf(user);
  const made = await checkpoints.create(session.id);
  await say(user, session);
  await checkpoints.restore(made.id);
  await checkpoints.list(session.id);
  await checkpoints.delete(made.id);
}

/** @param {User} user */
async function run(user) {
  const { client } = user;
  const { id } = await sessionOf(user);
  const signal = AbortSignal.any([user.signal, AbortSignal.timeout(runMsMax)]);
  const { runId } = await client.runs.start(id, { input: textOf(5) });
  let [text, ended, place] = ["", "", /** @type {string | null} */ (null)];
  while (ended === "" && !signal.aborted) {
    const events = client.runs.events(id, runId, { signal, ...(place !== null && { lastEventId: place }) });
    for await (const event of events) {
      if (event.type === "text-delta") text += event.text;
      // A reader that misses a delta gets the answer from here.
      if (event.type === "round-finished") text = String(event.message.content);
      if (event.type === "run-finished" || event.type === "run-failed") ended = event.type;
      // Disconnects in one of five cases, and rejoins at the last event id.
      if (Math.random() < 0.2) break;
    }
    place = events.lastEventId;
  }
  if (user.signal.aborted) return;
  if (ended !== "run-finished") throw new Wrong(`A run ended with ${ended === "" ? "nothing" : ended}.`);
  const page = await client.sessions.entries(id, { reverse: true, limit: 10 });
  const said = page.items.flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
  const answer = said.find(({ role }) => role === "assistant")?.content;
  if (answer !== text) throw new Wrong("The pieces of an answer do not add up to it.");
}

/** Two concurrent runs: the second is refused, unless the first has ended by then. @param {User} user */
async function contend(user) {
  const { runs } = user.client;
  const { id } = await sessionOf(user);
  const outcomes = await Promise.allSettled([1, 2].map(() => runs.start(id, { input: "Hello", ifBusy: "reject" })));
  for (const outcome of outcomes) {
    if (outcome.status === "rejected" && outcome.reason.code !== "SESSION_BUSY") throw outcome.reason;
    if (outcome.status === "rejected") continue;
    for await (const { type } of runs.events(id, outcome.value.runId, { signal: user.signal })) void type;
  }
  if (outcomes.every(({ status }) => status === "rejected"))
    throw new Wrong("Of two runs at once neither had its way.");
}

/** Every entry of a session is received once and in order, also by readers that leave and rejoin. @param {User} user */
async function watch(user) {
  const { client } = user;
  const session = await sessionOf(user);
  const { version } = await client.sessions.get(session.id);
  const failed = new AbortController();
  const signal = AbortSignal.any([user.signal, failed.signal]);
  const writing = sayAll(user, session, watchedTurns);
  // Reading must not wait for entries that do not exist, and must not wait long for others.
  writing.then(
    () => setTimeout(() => failed.abort(), seenMsMax).unref(),
    () => failed.abort(),
  );
  /** @type {number[]} */
  const seen = [];
  let place = String(version - 1);
  while (seen.length < watchedTurns && !signal.aborted) {
    const entries = client.sessions.watch(session.id, { lastEventId: place, signal });
    for await (const { seq } of entries) {
      seen.push(seq);
      if (seen.length === watchedTurns || Math.random() < 0.3) break;
    }
    place = entries.lastEventId ?? place;
  }
  await writing;
  if (user.signal.aborted) return;
  if (seen.length < watchedTurns || seen.some((seq, index) => seq !== version + index))
    throw new Wrong(`A watch from ${version} saw ${seen}.`);
}

/** Requests that must be refused with the right status. @param {User} user */
async function refused(user) {
  const { url, signal } = user;
  const { id } = await sessionOf(user);
  const json = { "content-type": "application/json" };
  const asked = /** @type {[status: number, path: string, init?: RequestInit][]} */ ([
    [404, "/api/sessions/nobody-knows-it"],
    [404, "/api/nothing"],
    [400, `/api/sessions/${id}/turns`, { method: "POST", headers: json, body: '{"role":' }],
    [400, `/api/sessions/${id}/turns`, { method: "POST", headers: json, body: '{"role":"nobody","content":"x"}' }],
    [400, `/api/sessions/${id}/entries?limit=0`],
    [405, `/api/sessions/${id}/entries`, { method: "PUT", headers: json, body: "{}" }],
    [400, `/api/sessions/${id}/watch`, { headers: { "last-event-id": "999999" } }],
    [415, `/api/sessions/${id}/turns`, { method: "POST", body: "x" }],
  ]);
  for (const [status, path, init] of asked) {
    const response = await fetch(`${url}${path}`, { ...init, signal });
    await response.text();
    if (response.status === 503) throw Object.assign(new Error("The server drains."), { status: 503 });
    if (response.status !== status)
      throw new Wrong(`${path.replace(id, ":id")} gave ${response.status}, not ${status}.`);
  }
}

/** @param {User} user */
async function verify(user) {
  await check(user, await sessionOf(user));
}

/**
 * Acknowledged entries are stored once.
 * @param {User} user
 * @param {OwnSession} session
 */
async function check(user, session) {
  const counts = new Map();
  for await (const { id } of user.client.sessions.entriesAll(session.id)) counts.set(id, (counts.get(id) ?? 0) + 1);
  for (const id of session.acknowledged) {
    if (counts.get(id) !== 1) throw new Wrong(`An acknowledged entry is there ${counts.get(id) ?? 0} times.`);
  }
}

/**
 * A session to do something with: one of the user's own, which do not grow forever.
 * @param {User} user
 * @returns {Promise<OwnSession>}
 */
async function sessionOf(user) {
  const session = user.sessions[Math.floor(Math.random() * user.sessions.length)];
  if (session !== undefined && session.acknowledged.size < acknowledgedMax) return session;
  await create(user);
  return /** @type {OwnSession} */ (user.sessions.at(-1));
}

/**
 * @param {User} user
 * @param {OwnSession} session
 */
async function say(user, session) {
  const turnId = user.newId("turn");
  await user.client.sessions.addTurn(session.id, { turnId, role: "user", content: textOf(40) });
  session.acknowledged.add(turnId);
}

/**
 * @param {User} user
 * @param {OwnSession} session
 * @param {number} count
 */
async function sayAll(user, session, count) {
  for (let times = 0; times < count; times++) await say(user, session);
}

/** @param {number} length in words */
function textOf(length) {
  return Array.from({ length }, () => words[Math.floor(Math.random() * words.length)]).join(" ");
}
