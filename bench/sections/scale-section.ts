import { randomUUID } from "node:crypto";
import { createAgent, defineTool, type Model, SessionManager } from "skein";
import { bullmqBell } from "skein/workers";
import { type Footprint, type FootprintReader, openFootprint } from "../fleet/footprint.ts";
import { atOnce, makeSessions, openFleetStore } from "../fleet/fleet-store.ts";
import { startWorkerProcess } from "../fleet/worker-process.ts";
import { formatBytes, formatCount } from "../format.ts";
import { MESSAGE_CHARACTERS, messageText } from "../message-of.ts";
import type { Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { type ServerKind, serverOf } from "../servers/server-kind.ts";

const section = "scale";
/** Where BullMQ keeps its tables. */
const BELL_SCHEMA = "bullmq";

/** What one session, turn, run, parked run, ring and worker cost a server: the numbers that docs/scale.md adds up. */
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
    return [...stored, ...(await measureBell(bench, { kind, url, prefix, footprint }))];
  } finally {
    await footprint.remove(prefix);
  }
}

/** A server, and a place on it. */
interface Place {
  readonly kind: ServerKind;
  readonly url: string;
  readonly prefix: string;
  readonly footprint: FootprintReader;
}

/** What sessions cost a store, and then what happens in each of them. */
async function measureStore({ sizes, progress }: Bench, { kind, url, prefix, footprint }: Place): Promise<Row[]> {
  const count = sizes.scaleItems;
  await using store = await openFleetStore(url, prefix);
  const manager = new SessionManager({ store });
  const sessionIds: string[] = [];
  const run = (input: string) => async (id: string) => {
    await manager.run(id, clerk, input, { runId: randomUUID(), park: { afterMs: 0 } });
  };
  const steps: readonly (readonly [what: string, act: () => Promise<void>])[] = [
    ["a session", async () => void sessionIds.push(...(await makeSessions(manager, count)))],
    [
      `a turn of ${MESSAGE_CHARACTERS} characters`,
      () => atOnce(sessionIds, async (id) => void (await addTurn(manager, id))),
    ],
    ["a run that has ended: request, start, question, answer, end", () => atOnce(sessionIds, run("Hello."))],
    ["a parked run: request, start, question, call, what is asked", () => atOnce(sessionIds, run("pay"))],
  ];
  const rows: Row[] = [];
  let before = await footprint.read(prefix);
  for (const [what, act] of steps) {
    progress(`scale: ${kind}, ${what}`);
    await act();
    const after = await footprint.read(prefix);
    rows.push(costRow(`${kind}, ${what}`, before, after, count));
    before = after;
  }
  return rows;
}

function addTurn(manager: SessionManager, id: string): Promise<unknown> {
  return manager.addTurn(id, { role: "user", content: messageText(0) });
}

/** What rings cost a bell while they wait, and what an idle worker holds. */
async function measureBell({ sizes, progress }: Bench, { kind, url, prefix, footprint }: Place): Promise<Row[]> {
  const count = sizes.scaleItems;
  const schema = BELL_SCHEMA;
  const bell = bullmqBell({ url });
  const runner = prefix;
  progress(`scale: ${kind}, the bell`);
  await bell.ring("first", { runner });
  const before = await footprint.read(schema);
  const ids = Array.from({ length: count }, () => randomUUID());
  await atOnce(ids, (id) => bell.ring(id, { runner }));
  const waiting = await footprint.read(schema);
  const listening = await bell.listen([runner], async () => {}, { concurrency: 64 });
  while ((await bell.counts()).waiting > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  await listening.close();
  await bell.close();
  const idle = await footprint.read(schema);
  const worker = await startWorkerProcess({ url, prefix, bell: "shared", concurrency: 32, modelMs: 0 });
  const { residentBytes } = await worker.state();
  const working = await footprint.read(schema);
  await worker[Symbol.asyncDispose]();
  return [
    costRow(`${kind}, a ring that waits`, before, waiting, count),
    costRow(`${kind}, what a ring leaves that was answered`, before, idle, count),
    {
      section,
      what: `${kind}, a worker with one agent and nothing to do: connections to the server, for sessions and bell`,
      measured: formatCount(working.connections - idle.connections),
    },
    { section, what: `${kind}, the same, memory of its process`, measured: formatBytes(residentBytes) },
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

/** Pays where it is told to, and answers otherwise. */
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
