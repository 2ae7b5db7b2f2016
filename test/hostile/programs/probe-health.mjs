// Checks a server's health every 100 ms on a separate connection, in a thread that does nothing else.
import { readFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

const EVERY_MS = 100;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let longestMs = 0;
/** @type {string[]} */
let failures = [];
/** @type {Promise<void>} */
let asking = Promise.resolve();
let stopped = false;

void probe();
parentPort?.on("message", async (word) => {
  if (word === "stop") {
    stopped = true;
    agent.destroy();
    parentPort?.close();
    return;
  }
  // One that was asked before the question counts to its end.
  await asking;
  parentPort?.postMessage({ longestMs, failures });
  longestMs = 0;
  failures = [];
});

/** How long the server has waited for a CPU core that ran something else, if the system reports it. */
function waitedMs() {
  try {
    const [, waitedNs] = readFileSync(`/proc/${workerData.pid}/schedstat`, "utf8").split(" ");
    return Number(waitedNs) / 1e6;
  } catch {
    return 0;
  }
}

async function probe() {
  while (!stopped) {
    asking = ask();
    await asking;
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}

/** @returns {Promise<void>} */
function ask() {
  const startMs = performance.now() - waitedMs();
  return new Promise((resolve) => {
    const end = (/** @type {string | null} */ failure) => {
      longestMs = Math.max(longestMs, performance.now() - waitedMs() - startMs);
      if (failure !== null) failures.push(failure);
      resolve();
    };
    const request = get(`${workerData.url}/api/health`, { agent, timeout: 5000 }, (response) => {
      response.resume();
      response.once("end", () => end(response.statusCode === 200 ? null : `status ${response.statusCode}`));
      response.once("error", (error) => end(error.message));
    });
    request.once("timeout", () => request.destroy(new Error("no answer within 5 s")));
    request.once("error", (error) => end(error.message));
  });
}
