// Uses a server like several concurrent users, and like clients that vanish, until its parent stops it. node
// http-client.mjs <url> <tag> <users> <vanishing clients> "calm": no client vanishes any more. "ending": from now on the server may be
// down. "stop": finish.
import { createClient } from "skein/client";
import { acts, Wrong } from "./http-acts.mjs";
import { vanishings } from "./http-vanish.mjs";

/**
 * The completed requests of one process of clients.
 * @typedef {object} Tally
 * @property {Record<string, number>} done acts that went well, by name
 * @property {number} vanished
 * @property {Record<string, number>} unexpected failures, by sentence
 */

/** The codes with which a server that shuts down may refuse a request. */
const endingCodes = new Set(["CONNECTION_FAILED", "DRAINING", "STORE_CLOSED"]);
const victimUsesMax = 40;
const [address = "", tag = "", users = "1", vanishing = "1"] = process.argv.slice(2);
const url = new URL(address);
const client = createClient({ url });
const stopping = new AbortController();
/** @type {Tally} */
const tally = { done: {}, vanished: 0, unexpected: {} };
let [calm, ending, drawn] = [false, false, 0];

const vanishers = Promise.all(Array.from({ length: Number(vanishing) }, vanishAgainAndAgain));
const working = Promise.all(Array.from({ length: Number(users) }, useAgainAndAgain));
process.on("message", async (word) => {
  if (word === "calm") calm = true;
  if (word === "calm") await vanishers;
  if (word === "ending") ending = true;
  if (word !== "stop") return void process.send?.(word);
  stopping.abort();
  await working;
  process.send?.(tally, () => process.disconnect());
});

async function useAgainAndAgain() {
  const { signal } = stopping;
  /** @type {import("./http-acts.mjs").User} */
  const user = { client, url: url.origin, signal, sessions: [], newId: (prefix) => `${prefix}-${tag}-${drawn++}` };
  const names = Object.keys(acts);
  while (!signal.aborted) {
    const name = names[Math.floor(Math.random() * names.length)] ?? "";
    try {
      await acts[name]?.(user);
      tally.done[name] = (tally.done[name] ?? 0) + 1;
    } catch (error) {
      if (ending && isEnding(error)) return;
      note(`${name}: ${describe(error)}`);
    }
  }
}

async function vanishAgainAndAgain() {
  const ways = Object.values(vanishings);
  let [sessionId, uses] = ["", victimUsesMax];
  while (!calm) {
    try {
      if (uses++ >= victimUsesMax) {
        if (sessionId !== "") await client.sessions.delete(sessionId);
        [sessionId, uses] = [(await client.sessions.create()).header.id, 0];
      }
      await ways[Math.floor(Math.random() * ways.length)]?.(url, sessionId);
      tally.vanished += 1;
    } catch (error) {
      note(`vanishing: ${describe(error)}`);
    }
  }
}

/** @param {unknown} error */
function isEnding(error) {
  const { code, status, name, cause } = /** @type {{ [key: string]: unknown }} */ (error);
  if (stopping.signal.aborted && name === "AbortError") return true;
  // Errors of `fetch` have the reason in `cause`.
  return endingCodes.has(String(code)) || status === 503 || (error instanceof TypeError && cause !== undefined);
}

/** @param {string} sentence */
function note(sentence) {
  tally.unexpected[sentence] = (tally.unexpected[sentence] ?? 0) + 1;
}

/** @param {unknown} error */
function describe(error) {
  const { code, status, message, cause } = /** @type {Error & { code?: string, status?: number }} */ (error);
  if (error instanceof Wrong) return message;
  const reason = cause instanceof Error ? ` (${cause.message})` : "";
  return `${status ?? "no answer"} ${code ?? ""} ${message}${reason}`;
}
