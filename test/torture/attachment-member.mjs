// Appends pictures to sessions, forks them, stores and sweeps blobs, and erases sessions, until its standard input ends.
//
// node attachment-member.mjs <address> <blobs> <roots> <tag>
//
// Prints "ready", "secret <session>" before anything of a session that is erased later is stored, "erased <session>", and for a
// violated promise "wrong <sentence>".
import { writeSync } from "node:fs";
import { createHeader, SessionManager } from "skein";
import { openWithBlobs, pictureOf, rootOf, secretOf } from "./attachment-store.mjs";

const [address = "", blobs = "", rootNames = "", tag = ""] = process.argv.slice(2);
const roots = rootNames.split(",");
/** The errors that a store may throw while other processes erase, sweep and lock its files. */
const expected = ["SESSION_NOT_FOUND", "SESSION_BUSY", "STORE_FAILED", "CONFLICT"];
const lanes = 2;
const contents = 8;
const sessionsMax = 6;
let stopped = false;
let made = 0;

process.stdin.on("end", () => {
  stopped = true;
});
process.stdin.resume();

const store = await openWithBlobs(address, blobs);
const manager = new SessionManager({ store });
say("ready");
await Promise.all(Array.from({ length: lanes }, () => work()));
await store.close();

async function work() {
  while (!stopped) {
    try {
      await act();
    } catch (error) {
      const { code = "", message } = /** @type {{ code?: string, message: string }} */ (error);
      if (!expected.includes(code)) say(`wrong ${code} ${message}`);
    }
  }
}

async function act() {
  const root = anyOf(roots);
  const dice = Math.random();
  if (dice < 0.4) return append(await sessionOf(root));
  if (dice < 0.5) return fork(root);
  if (dice < 0.6) return appendReference(await sessionOf(root));
  if (dice < 0.75) return sweep(root);
  return eraseOne(root);
}

/** @param {string} id */
async function append(id) {
  await store.append(id, [messageOf(pictureOf(Math.floor(Math.random() * contents)))]);
}

/** @param {string} root */
async function fork(root) {
  await store.fork(await sessionOf(root), createHeader({ id: `${root}.${tag}-${made++}`, userId: "ada" }));
}

/** @param {string} id */
async function appendReference(id) {
  const ref = await store.putBlob(id, pictureOf(Math.floor(Math.random() * contents)));
  const part = { type: /** @type {const} */ ("image"), mediaType: "image/png", ...ref };
  try {
    await store.append(id, [{ type: "message", message: { role: "user", content: [part] } }]);
  } catch (error) {
    // A sweep without grace, which only tests call, may have removed what nothing refers to.
    if (/** @type {{ code?: string }} */ (error).code !== "BLOB_NOT_FOUND") throw error;
  }
}

/** @param {string} root */
async function sweep(root) {
  await store.sweepBlobs(Math.random() < 0.5 ? { graceMs: 0 } : { graceMs: 0, scope: root });
}

/** Stores pictures in a session that nobody forks, and erases it. @param {string} root */
async function eraseOne(root) {
  const id = `${root}.secret-${tag}-${made++}`;
  say(`secret ${id}`);
  await store.fork(await sessionOf(root), createHeader({ id, userId: "ada" }));
  await store.append(id, [messageOf(secretOf(id)), messageOf(pictureOf(0))]);
  if (Math.random() < 0.3) return;
  await manager.erase({ sessionId: id });
  say(`erased ${id}`);
}

/** The root itself or one of its forks. @param {string} root */
async function sessionOf(root) {
  const { items } = await store.list({ limit: 100 });
  const ids = items.map(({ header }) => header.id).filter((id) => rootOf(id) === root && !id.includes("secret"));
  return anyOf(ids.slice(0, sessionsMax)) ?? root;
}

/** @param {Uint8Array} bytes */
function messageOf(bytes) {
  const data = Buffer.from(bytes).toString("base64");
  const part = { type: /** @type {const} */ ("image"), mediaType: "image/png", data };
  return {
    type: /** @type {const} */ ("message"),
    message: { role: /** @type {const} */ ("user"), content: [part] },
  };
}

/**
 * @template T
 * @param {readonly T[]} list
 * @returns {T}
 */
function anyOf(list) {
  return /** @type {T} */ (list[Math.floor(Math.random() * list.length)]);
}

/** Writes synchronously, so that the output before a kill is complete. @param {string} line */
function say(line) {
  writeSync(1, `${line}\n`);
}
