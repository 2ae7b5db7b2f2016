import { randomUUID } from "node:crypto";
import { createAgent, defineTool, type Model, SessionManager } from "skein";
import { bullmqQueue } from "skein/workers";
import { type Footprint, type FootprintReader, openFootprint } from "../fleet/footprint.ts";
import { atOnce, makeSessions, openFleetStore } from "../fleet/fleet-store.ts";
import { startWorkerProcess } from "../fleet/worker-process.ts";
import { formatBytes, formatCount } from "../format.ts";
import { MESSAGE_CHARACTERS, messageText } from "../message-of.ts";
import type { Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { type ServerKind, serverOf } from "../servers/server-kind.ts";

const section = "scale";
/** Turns, or runs, of one session. */
const TIMES = 10;
/** The schema of BullMQ's tables. */
const QUEUE_SCHEMA = "bullmq";

/** The cost of sessions, runs, notifications and workers for a server; docs/scale.md uses these numbers. */
export const scaleSection: Section = {
  name: section,
  async run(bench) {
    const rows: Row[] = [];
    for (const kind of ["postgres", "redis"] as const) {
      const place = serverOf(kind);
      if ("problem" in place) rows.push({ section, what: kind, measured: `not measured: ${place.problem}` });
      else rows.push(...(await measureServer(bench, kind, place.url)));
    }
    return rows;
  },
};

async function measureServer(bench: Bench, kind: ServerKind, url: string): Promise<Row[]> {
  await using footprint = await openFootprint(url);
  const prefix = `skein_bench_${randomUUID().slice(0, 8)}`;
  try {
    const stored = await measureStore(bench, { kind, url, prefix, footprint });
    return [...stored, ...(await measureQueue(bench, { kind, url, prefix, footprint }))];
  } finally {
    await footprint.remove(prefix);
  }
}

/** A server, and a prefix on it. */
interface Place {
  readonly kind: ServerKind;
  readonly url: string;
  readonly prefix: string;
  readonly footprint: FootprintReader;
}

/**
 * The size of sessions in a store, by their content: servers allocate memory in blocks, so one session would show
 * little.
 */
async function measureStore({ sizes, progress }: Bench, { kind, url, prefix, footprint }: Place): Promise<Row[]> {
  const count = sizes.scaleItems;
  await using store = await openFleetStore(url, prefix);
  const manager = new SessionManager({ store });
  const run = async (id: string, input: string): Promise<void> => {
    await manager.run(id, clerk, input, { runId: randomUUID(), park: { afterMs: 0 } });
  };
  const turn = (id: string): Promise<unknown> => manager.addTurn(id, { role: "user", content: messageText(0) });
  const steps: readonly (readonly [what: string, times: number, act: (id: string) => Promise<unknown>])[] = [
    ["a session", 0, turn],
    [`a session of ${TIMES} turns of ${MESSAGE_CHARACTERS} characters`, TIMES, turn],
    [`a session of ${TIMES} runs that have ended, each a question and an answer`, TIMES, (id) => run(id, "Hello.")],
    ["a session with a run that is parked", 1, (id) => run(id, "pay")],
  ];
  const rows: Row[] = [];
  for (const [what, times, act] of steps) {
    progress(`scale: ${kind}, ${what}`);
    const before = await footprint.read(prefix);
    await atOnce(await makeSessions(manager, count), async (id) => {
      for (let time = 0; time < times; time++) await act(id);
    });
    rows.push(costRow(`${kind}, ${what}`, before, await footprint.read(prefix), count));
  }
  return rows;
}

/** The size of waiting notifications in a queue, and the connections of an idle worker. */
async function measureQueue({ sizes, progress }: Bench, { kind, url, prefix, footprint }: Place): Promise<Row[]> {
  const count = sizes.scaleItems;
  const queue = bullmqQueue({ url });
  progress(`scale: ${kind}, the queue`);
  await queue.notify("first", { runner: prefix });
  const before = await footprint.read(QUEUE_SCHEMA);
  const ids = Array.from({ length: count }, () => randomUUID());
  await atOnce(ids, (id) => queue.notify(id, { runner: prefix }));
  const waiting = await footprint.read(QUEUE_SCHEMA);
  const listening = await queue.listen([prefix], async () => {}, { concurrency: 64 });
  while ((await queue.counts()).waiting > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  await listening.close();
  await queue.close();
  const idle = await footprint.read(QUEUE_SCHEMA);
  const worker = await startWorkerProcess({ url, prefix, queue: "shared", concurrency: 32, modelMs: 0 });
  const working = await footprint.read(QUEUE_SCHEMA);
  await worker[Symbol.asyncDispose]();
  return [
    costRow(`${kind}, a notification that waits`, before, waiting, count),
    costRow(`${kind}, what a notification leaves that was answered`, before, idle, count),
    {
      section,
      what: `${kind}, a worker with one agent and nothing to do: connections to the server, for sessions and queue`,
      measured: formatCount(working.connections - idle.connections),
    },
  ];
}

function costRow(what: string, before: Footprint, after: Footprint, count: number): Row {
  const items = (after.items - before.items) / count;
  const bytes = (after.bytes - before.bytes) / count;
  const name = what.startsWith("redis") ? "keys" : "rows";
  return { section, what, measured: `${formatBytes(bytes)}, ${Number(items.toFixed(2))} ${name}` };
}

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: { type: "object", properties: {} },
  needsApproval: true,
  execute: () => "Paid.",
});

/** Calls the tool `pay` when asked to, and answers otherwise. */
const model: Model = {
  provider: "bench",
  id: "clerk",
  async complete({ messages }) {
    const pays = messages.at(-1)?.content === "pay";
    const toolCalls = [{ id: "call-1", name: "pay", arguments: "{}" }];
    if (pays) return { role: "assistant", content: null, toolCalls, stopReason: "tool_calls" };
    return { role: "assistant", content: messageText(1), stopReason: "stop" };
  },
};

const clerk = createAgent({ name: "clerk", prompt: "You pay.", model, tools: [pay], builtInTools: false });
