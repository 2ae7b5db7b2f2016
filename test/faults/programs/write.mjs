// Appends to sessions, creating them if necessary, until it has made the given number of appends or its standard input
// ends. It prints each attempt and its result; after a failure it retries. node write.mjs <address> <sessions> <tag>
// <appends> <appends in flight> Prints "try <session> <ids>", "done <session> <seq of the first> <ids>", "failed
// <code>" and, for a violated promise, "wrong <sentence>".
import { writeSync } from "node:fs";
import { setImmediate as turn, setTimeout as wait } from "node:timers/promises";
import { createHeader } from "skein";
import { openAt } from "./open-at.mjs";

const [address = "", sessionNames = "", tag = "", appends = "0", lanes = "1"] = process.argv.slice(2);
const sessions = sessionNames.split(",");
/** The errors that a store may throw while its server is down, or while another process holds a file. */
const expectedCodes = ["STORE_FAILED", "SESSION_BUSY"];
const retryWaitMs = 5;
const readEvery = 10;
let [stopped, begun] = [false, 0];

process.stdin.on("end", () => {
  stopped = true;
});
process.stdin.resume();

const store = await openAt(address);
for (const id of sessions) {
  await store.create(createHeader({ id })).catch((error) => {
    if (error.code !== "SESSION_EXISTS") throw error;
  });
}
await Promise.all(Array.from({ length: Number(lanes) }, (_, lane) => writeLane(`${tag}.${lane}`)));
await store.close();
process.stdin.destroy();
// Closing a connection that is still being established takes a moment.
const given = Date.now() + 1000;
while (process.getActiveResourcesInfo().includes("Timeout") && Date.now() < given) await turn();
if (process.getActiveResourcesInfo().includes("Timeout"))
  say("wrong Something is waited for after the store was closed.");

/** @param {string} lane */
async function writeLane(lane) {
  while (!stopped && begun < Number(appends)) {
    const i = begun++;
    const session = sessions[Math.floor(Math.random() * sessions.length)] ?? "";
    // Every fifth append has three entries, and changes what a listing filters by.
    const drafts = i % 5 === 4 ? threeOf(`${lane}-${i}`, i) : [messageOf(`${lane}-${i}`)];
    const ids = drafts.map(({ id }) => id).join(" ");
    // Printed synchronously, so that the output before a kill is complete.
    say(`try ${session} ${ids}`);
    const { entries } = await untilAnswered(() => store.append(session, drafts));
    const seq = entries[0]?.seq ?? -1;
    say(`done ${session} ${seq} ${ids}`);
    if (i % readEvery === 0) await readBack(session, drafts[0]?.id ?? "", seq);
    // A synchronous store never yields to the event loop, so the end of the input would not be noticed.
    await turn();
  }
}

/**
 * An acknowledged entry is visible to every reader from that moment on.
 * @param {string} session
 * @param {string} id
 * @param {number} seq
 */
async function readBack(session, id, seq) {
  const entry = await untilAnswered(() => store.getEntry(session, id));
  if (entry?.seq !== seq) say(`wrong ${id} was acknowledged at ${seq} of ${session} and read at ${entry?.seq}.`);
}

/**
 * @template T
 * @param {() => Promise<T>} call
 * @returns {Promise<T>}
 */
async function untilAnswered(call) {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const code = String(/** @type {{ code?: string }} */ (error).code);
      if (!expectedCodes.includes(code)) {
        say(`wrong An unexpected failure: ${code} ${error}`);
        process.exit(1);
      }
      say(`failed ${code}`);
      await wait(retryWaitMs);
    }
  }
}

/** @param {string} line */
function say(line) {
  writeSync(1, `${line.replaceAll("\n", " ")}\n`);
}

/** @param {string} id */
function messageOf(id) {
  return /** @type {const} */ ({ id, type: "message", message: { role: "user", content: `${id} ${"x".repeat(200)}` } });
}

/**
 * @param {string} id
 * @param {number} i
 */
function threeOf(id, i) {
  const status = i % 2 === 0 ? "suspended" : "active";
  return /** @type {const} */ ([
    messageOf(`${id}/1`),
    { id: `${id}/2`, type: "status", status },
    { id: `${id}/3`, type: "session_info", name: id },
  ]);
}
