// A worker in a separate process, until SIGTERM. Each call of `note` writes a line to a file: run and round. node
// fleet-worker.mjs <store> <queue> <file of effects> <leaseMs> <sweepMs> Prints "ready", "round <run> <round>" and
// "closed".
import { appendFileSync, closeSync, openSync, writeSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { createAgent, defineTool, openStore, SessionManager } from "skein";
import { bullmqQueue, startWorker } from "skein/workers";

const [storeUrl = "", queueUrl = "", effects = "", leaseMs = "2000", sweepMs = "1000"] = process.argv.slice(2);
const print = (/** @type {string} */ line) => writeSync(1, `${line}\n`);

/**
 * Obeys its input: `rounds=3 ms=50` calls `note` in three rounds of 50 ms each; `talk=20 ms=10` streams 20 deltas;
 * `pay` needs approval. With `call=60000` a call takes that long; with `hold=8` the first worker to stream 8 deltas
 * stops there.
 * @type {import("skein").Model}
 */
const model = {
  provider: "test",
  id: "told",
  complete: () => Promise.reject(new Error("It streams.")),
  async *stream({ messages }, { signal } = {}) {
    const from = messages.findLastIndex(({ role }) => role === "user");
    const input = String(messages[from]?.content);
    const told = (/** @type {string} */ name) => Number(new RegExp(`${name}=(\\d+)`).exec(input)?.[1] ?? 0);
    const round = messages.slice(from).filter(({ role }) => role === "assistant").length;
    if (round < told("rounds") || (input.includes("pay") && round === 0)) {
      const name = input.includes("pay") ? "pay" : "note";
      yield {
        type: "tool-call-delta",
        index: 0,
        id: `call-${round}`,
        name,
        arguments: JSON.stringify({ round, ms: told("call") || told("ms") }),
      };
      yield { type: "finish", stopReason: "tool_calls" };
      return;
    }
    for (let piece = 0; piece < told("talk"); piece++) {
      yield { type: "text-delta", text: `${piece} ` };
      const ms = piece + 1 === told("hold") && isFirst() ? 60_000 : told("ms");
      await wait(ms, undefined, signal === undefined ? {} : { signal });
    }
    yield { type: "text-delta", text: "done" };
    yield { type: "finish", stopReason: "stop" };
  },
};

/** Whether no worker of the fleet has come here before. */
function isFirst() {
  try {
    closeSync(openSync(`${effects}.held`, "wx"));
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {string} name
 * @param {object} more
 */
const tool = (name, more = {}) =>
  defineTool({
    name,
    description: name,
    parameters: {
      type: "object",
      properties: { round: { type: "integer" }, ms: { type: "integer" } },
      required: ["round", "ms"],
    },
    async execute({ round, ms }, { runId }) {
      appendFileSync(effects, `${runId} ${round}\n`);
      print(`round ${runId} ${round}`);
      await wait(Number(ms));
      return "ok";
    },
    ...more,
  });

const agent = createAgent({
  name: "helper",
  prompt: "",
  model,
  builtInTools: false,
  tools: [tool("note"), tool("pay", { needsApproval: true })],
});

const store = await openStore(storeUrl);
const manager = new SessionManager({ store });
const queue = bullmqQueue({ url: queueUrl });
const worker = await startWorker({
  manager,
  agents: [agent],
  queue,
  leaseMs: Number(leaseMs),
  sweepMs: Number(sweepMs),
  park: { afterMs: 100 },
  onError: (/** @type {unknown} */ error) => print(`error ${error}`),
});
print("ready");
process.once("SIGTERM", () => void end());

async function end() {
  await worker.close({ drainMs: 10_000 });
  await queue.close();
  await store.close();
  print("closed");
}
