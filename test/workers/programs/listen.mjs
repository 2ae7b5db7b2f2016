// Listens at a queue in a separate process, and prints every 100 ms that its event loop turns, with the processor time
// used so far in milliseconds. With "notifies", it notifies itself all the time. "close" on standard input closes the
// queue. node listen.mjs <queue> <runner> [notifies] Prints "ready", "beat <ms>", "heard <session>", "topic <text>" and
// "closed <ms>".
import { writeSync } from "node:fs";
import { bullmqQueue } from "skein/workers";

const [url = "", runner = "", notifies = ""] = process.argv.slice(2);
const print = (/** @type {string} */ line) => writeSync(1, `${line}\n`);
const usedMs = () => {
  const { user, system } = process.cpuUsage();
  return Math.round((user + system) / 1000);
};

const queue = bullmqQueue({ url });
queue.onError(() => {});
await queue.listen(
  [runner, `${runner}.other`],
  async (sessionId) => void (sessionId.startsWith("busy") || print(`heard ${sessionId}`)),
  { concurrency: 4, leaseMs: 2000 },
);
await queue.subscribe(`${runner}.topic`, (data) => print(`topic ${Buffer.from(data)}`));
// After a job, a worker asks for the next one without waiting for a notification.
let notified = 0;
const notify = () => void queue.notify(`busy-${++notified % 50}`, { runner }).catch(() => {});
const notifying = notifies === "" ? undefined : setInterval(notify, 5);
const beats = setInterval(() => print(`beat ${usedMs()}`), 100);
print("ready");

process.stdin.once("data", async () => {
  const since = performance.now();
  clearInterval(notifying);
  await queue.close();
  print(`closed ${Math.round(performance.now() - since)}`);
  clearInterval(beats);
  process.stdin.destroy();
});
