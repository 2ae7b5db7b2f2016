// A fleet: two servers and three workers, each a process of its own, on one Redis. The worker that has the run is killed
// in the middle of its answer; another one continues, and readers of the events get the whole answer. No API key needed.
// REDIS_URL names a Redis to use; npm run example 20 starts one if it is not set.
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createAgent, defineTool, type Model, openManager } from "skein";
import { type Client, createClient } from "skein/client";
import { createServer } from "skein/http";
import { openRedisStore } from "skein/redis";
import { bullmqQueue, startWorker } from "skein/workers";

const url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";
const [role = "main", name = "main", prefix = `fleet-${process.pid}`] = process.argv.slice(2);
const ANSWER = "Your table for four is booked for eight o'clock, by the window. Enjoy the evening!";

const bookTable = defineTool({
  name: "book_table",
  description: "Books a table. Doing it twice would book two.",
  parameters: { type: "object", properties: { people: { type: "integer" } }, required: ["people"] },
  execute: ({ people }) => {
    appendFileSync("bookings.txt", `a table for ${people}, by ${name}\n`);
    return "Booked.";
  },
});

/** Calls the tool first, then streams words, and pauses in the middle of the answer, where the worker is killed. */
let free = false;
process.once("message", () => {
  free = true;
});
const model: Model = {
  provider: "example",
  id: "slow",
  complete: () => Promise.reject(new Error("This model only streams.")),
  async *stream({ messages }) {
    process.send?.("asked");
    if (messages.at(-1)?.role !== "tool") {
      yield { type: "tool-call-delta", index: 0, id: "1", name: "book_table", arguments: '{"people":4}' };
      yield { type: "finish", stopReason: "tool_calls" };
      return;
    }
    for (const text of ANSWER.split(/(?<= )/)) {
      yield { type: "text-delta", text };
      while (text === "four " && !free) await wait(20);
    }
    yield { type: "finish", stopReason: "stop" };
  },
};

const waiter = createAgent({ name: "waiter", prompt: "You book.", model, tools: [bookTable], builtInTools: false });

if (role === "main") await main();
else await take(role);

/** The program of a child process, until its parent ends it. */
async function take(role: string): Promise<void> {
  const store = await openRedisStore({ url, prefix });
  const manager = await openManager({ store });
  const queue = bullmqQueue({ url });
  const agents = [waiter];
  const part =
    role === "server"
      ? await createServer({ manager, agents, queue })
      : await startWorker({ manager, agents, queue, name, leaseMs: 2000 });
  process.send?.("listen" in part ? await part.listen() : "ready");
  await once(process, "disconnect");
  await part.close();
  await queue.close();
  await store.close();
}

async function main(): Promise<void> {
  const workers = await Promise.all(["worker 1", "worker 2", "worker 3"].map((each) => start("worker", each)));
  const servers = await Promise.all(["server 1", "server 2"].map((each) => start("server", each)));
  const asked: string[] = [];
  for (const worker of workers) worker.child.on("message", () => asked.push(worker.name));

  // Requested on one server, followed on the other.
  const [front, reader] = servers.map(({ said }) => createClient({ url: said })) as [Client, Client];
  const { id } = (await front.sessions.create({ userId: "ann" })).header;
  const { runId } = await front.runs.start(id, { agent: "waiter", input: "A table for four at eight, please." });

  let [heard, answer, claims, killedMs] = ["", "", 0, 0];
  for await (const event of reader.runs.events(id, runId)) {
    if (event.type === "run-started") {
      claims += 1;
      if (claims === 1) console.log("run-started");
      else console.log(`run-started again, ${Date.now() - killedMs} ms after the kill: "${heard}" is taken back`);
      heard = ""; // discard the live words since the last round
    } else if (event.type === "text-delta") {
      heard += event.text;
      if (killedMs > 0 || heard.length < 20) continue;
      const victim = workers.find((worker) => worker.name === asked.at(-1));
      victim?.child.kill("SIGKILL");
      killedMs = Date.now();
      console.log(`"${heard}" … and ${victim?.name} is killed`);
      for (const worker of workers) if (worker !== victim) worker.child.send("go on");
    } else if (event.type === "tool-finished") console.log(`tool-finished: ${event.message.content}`);
    else if (event.type === "round-finished") answer = String(event.message.content); // from the log
  }
  const taker = asked.at(-1);
  console.log(`"${answer}"\nThe answer was finished by ${taker}.`);

  assert.equal(answer, ANSWER);
  assert.equal(claims, 2);
  assert.equal(asked.length, 3); // one for the call, one in the killed worker, one more: stored answers were not requested again
  assert.notEqual(taker, asked[0]);
  assert.match(readFileSync("bookings.txt", "utf8"), /^a table for 4, by .+\n$/); // one table
  const { status } = await front.runs.get(id, runId);
  assert.equal(status, "finished");
  await Promise.all([...workers, ...servers].map(({ child }) => end(child)));
}

/** Starts a process; resolves with its first message. */
async function start(role: string, name: string) {
  const child = fork(fileURLToPath(import.meta.url), [role, name, prefix], { stdio: "inherit" });
  const [said] = (await once(child, "message")) as [string];
  return { name, child, said };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.signalCode !== null) return;
  child.disconnect();
  await once(child, "exit");
}
