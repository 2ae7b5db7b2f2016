import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import type { WireRunEvent } from "../../src/http/client/index.ts";
import { textOf } from "../../src/session/message.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { bullmqQueue, type RunQueue, startWorker } from "../../src/workers/index.ts";
import { postgresUrl } from "../postgres-server.ts";
import { redisSkip, redisUrl } from "../redis-server.ts";
import { modelOf, toolOf } from "../sample-run.ts";
import { skipBecause } from "../skip.ts";
import { type Gate, gate } from "./runs-agents.ts";
import { openRunServer } from "./runs-server.ts";

const ROUNDS = 12;
const PIECES = 7;

/**
 * Resolves when the reader has received the first part: before that, the publisher may not know that there is a reader.
 */
let reads: Gate = gate();

/** Streams a few parts in each round without a pause, and calls a tool. */
const talker = modelOf(() => Promise.reject(new Error("This model streams.")), {
  async *stream({ messages }) {
    const round = messages.filter(({ role }) => role === "assistant").length;
    for (let piece = 0; piece < PIECES; piece++) {
      yield { type: "text-delta", text: `${round}.${piece} ` };
      if (round === 0 && piece === 0) await reads.opened;
    }
    if (round + 1 < ROUNDS)
      yield { type: "tool-call-delta", index: 0, id: `call-${round}`, name: "look", arguments: "{}" };
    yield { type: "finish", stopReason: round + 1 < ROUNDS ? "tool_calls" : "stop" };
  },
});

/** A server and a worker that share a store and a queue; `spoil` changes the queue on which the worker publishes. */
async function openTalk(url: string, spoil: (queue: RunQueue) => RunQueue = (queue) => queue) {
  const look = toolOf("look", () => "seen", { effects: "reads" });
  const agent = createAgent({ name: "helper", prompt: "", model: talker, builtInTools: false, tools: [look] });
  const queueOf = (): RunQueue => {
    const queue = bullmqQueue({ url });
    onTestFinished(() => queue.close());
    return queue;
  };
  const store = await openStore(url);
  onTestFinished(() => store.close());
  const server = await openRunServer({ store, agents: { helper: agent }, init: { queue: queueOf() } });
  const worker = await startWorker({ manager: server.manager, agents: [agent], queue: spoil(queueOf()), ask: "never" });
  onTestFinished(() => worker.close({ drainMs: 0 }));
  return server;
}

/** All events of a run that is followed from its request on. */
async function follow({ client, manager }: Awaited<ReturnType<typeof openTalk>>): Promise<WireRunEvent[]> {
  reads = gate();
  const { sessionId } = await manager.create({ userId: "ann" });
  const { runId } = await client.runs.start(sessionId, { input: "Talk." });
  const events: WireRunEvent[] = [];
  for await (const event of client.runs.events(sessionId, runId)) {
    events.push(event);
    if (event.type === "text-delta") reads.open();
  }
  return events;
}

/** The live text of each round before it was over, and the text in the log. */
function roundsOf(events: readonly WireRunEvent[]): { readonly live: string; readonly kept: string }[] {
  const rounds: { live: string; kept: string }[] = [];
  let live = "";
  for (const event of events) {
    if (event.type === "text-delta") live += event.text;
    if (event.type !== "round-finished") continue;
    rounds.push({ live, kept: textOf(event.message.content) });
    live = "";
  }
  return rounds;
}

const servers = { redis: redisUrl, postgres: postgresUrl };

test.for(Object.entries(servers))(
  "over a queue on %s a reader has every word of a round, once and in order, before the round is over",
  async ([kind, url], context) => {
    if (kind === "redis" && redisSkip !== null) skipBecause(context, redisSkip);
    const talk = await openTalk(await url());
    for (let run = 0; run < 3; run++) {
      const events = await follow(talk);
      const rounds = roundsOf(events);
      expect(rounds).toHaveLength(ROUNDS);
      for (const { live, kept } of rounds) expect(live).toBe(kept);
      expect(events.filter(({ type }) => type === "events-dropped")).toEqual([]);
      expect(events.at(-1)?.type).toBe("run-finished");
    }
  },
);

test.for(Object.entries(servers))(
  "words that a queue on %s loses are counted for the reader",
  async ([kind, url], context) => {
    if (kind === "redis" && redisSkip !== null) skipBecause(context, redisSkip);
    let [published, lost] = [0, 0];
    const talk = await openTalk(await url(), (queue) => {
      const { publish } = queue;
      queue.publish = async (topic, data) => {
        const { event } = topic.startsWith("run.") ? JSON.parse(Buffer.from(data).toString()) : {};
        // The last words of a round, and some in its middle.
        const isLost = event?.type === "text-delta" && (/\.6 $/.test(event.text) || ++published % 5 === 0);
        if (isLost) lost += 1;
        else await publish.call(queue, topic, data);
      };
      return queue;
    });
    const events = await follow(talk);
    const dropped = events.flatMap((event) => (event.type === "events-dropped" ? [event.count] : []));
    expect(lost).toBeGreaterThan(ROUNDS);
    expect(dropped.reduce((sum, count) => sum + count, 0)).toBe(lost);
    const heard = events.flatMap((event) => (event.type === "text-delta" ? [event.text] : []));
    expect(new Set(heard).size).toBe(heard.length);
    expect(heard).toHaveLength(ROUNDS * PIECES - lost);
    expect(roundsOf(events)).toHaveLength(ROUNDS);
  },
);
