import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { createAgent, SessionManager } from "skein";
import { bullmqQueue, startWorker } from "skein/workers";
import { atOnce, makeSessions, openFleetStore, requestRuns } from "../fleet/fleet-store.ts";
import { startWorkerProcess, type WorkerInput } from "../fleet/worker-process.ts";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import { type Contender, race } from "../race.ts";
import { below, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { serverOf } from "../servers/server-kind.ts";
import { medianMs, percentile } from "../statistics.ts";

const section = "fleet";
const MODEL_MS = 1000;
const QUEUE_MS_MAX = 5;
const LOOK_MS = 100;
const WARM_RUNS = 10;

/** Many parallel runs: on two workers with a queue on Redis, and in one process without a queue. */
export const fleetSection: Section = {
  name: section,
  async run(bench) {
    const place = serverOf("redis");
    if ("problem" in place) return [{ section, what: "all of it", measured: `not measured: ${place.problem}` }];
    return [...(await loadRows(bench, place.url)), await queueRow(bench, place.url)];
  },
};

/** The result of a load of runs. */
interface Load {
  readonly perSecond: number;
  /** The times from each request to its start. */
  readonly startMs: readonly number[];
  /** The peak memory of the workers above their initial memory, divided by their maximum number of parallel runs. */
  readonly bytesPerRun: number;
}

async function loadRows({ sizes, progress }: Bench, url: string): Promise<Row[]> {
  const runs = sizes.fleetRuns;
  const own = { queue: "own", concurrency: runs } as const;
  const shared = { queue: "shared", concurrency: runs / 2 } as const;
  progress(`fleet: ${runs} runs in one process`);
  const one = await measureLoad(url, [own], runs);
  progress(`fleet: ${runs} runs on two workers`);
  const two = await measureLoad(url, [shared, shared], runs);
  const what = `${formatCount(runs)} runs at once, a model that takes ${formatMs(MODEL_MS)}, store and queue on Redis, two workers`;
  const times = (load: Load, share: number): string => formatMs(percentile(load.startMs, share));
  const start = (share: number): Row => ({
    section,
    what: `${what}, from the request to the start, p${share * 100}`,
    measured: times(two, share),
    against: `${times(one, share)} in one process`,
    ratio: percentile(two.startMs, share) / percentile(one.startMs, share),
  });
  return [
    {
      section,
      what: `${what}, runs that end in a second`,
      measured: `${formatCount(Math.round(two.perSecond))} runs/s`,
      against: `${formatCount(Math.round(one.perSecond))} runs/s in one process`,
      ratio: two.perSecond / one.perSecond,
    },
    start(0.5),
    start(0.99),
    {
      section,
      what: `${what}, memory of a worker for each run that it has`,
      measured: formatBytes(two.bytesPerRun),
      against: `${formatBytes(one.bytesPerRun)} in one process`,
      ratio: two.bytesPerRun / one.bytesPerRun,
    },
  ];
}

/** Requests all runs at once; the times are those in the log. */
async function measureLoad(
  url: string,
  kinds: readonly Pick<WorkerInput, "queue" | "concurrency">[],
  runs: number,
): Promise<Load> {
  const prefix = `skein_bench_${randomUUID().slice(0, 8)}`;
  await using store = await openFleetStore(url, prefix);
  const manager = new SessionManager({ store });
  const made = await makeSessions(manager, WARM_RUNS + runs);
  const [warm, sessionIds] = [made.slice(0, WARM_RUNS), made.slice(WARM_RUNS)];
  const queue = bullmqQueue({ url });
  const workers = await Promise.all(
    kinds.map((kind) => startWorkerProcess({ url, prefix, modelMs: MODEL_MS, ...kind })),
  );
  /** A worker's private queue can only be notified in its process. */
  const ask = async (ids: readonly string[]): Promise<void> => {
    if (kinds[0]?.queue === "own") await workers[0]?.request(ids);
    else await requestRuns(manager, queue, ids);
  };
  try {
    // The first runs wait for connections, which is not part of a run's cost.
    await ask(warm);
    await timesOf(manager, warm);
    const before = await Promise.all(workers.map((worker) => worker.state()));
    await ask(sessionIds);
    const times = await timesOf(manager, sessionIds);
    const after = await Promise.all(workers.map((worker) => worker.state()));
    const grown = after.map(({ peakBytes, most }, index) => (peakBytes - (before[index]?.residentBytes ?? 0)) / most);
    const spanMs = Math.max(...times.map(({ ended }) => ended)) - Math.min(...times.map(({ asked }) => asked));
    return {
      perSecond: (runs / spanMs) * 1000,
      startMs: times.map(({ asked, started }) => started - asked),
      bytesPerRun: grown.reduce((sum, bytes) => sum + bytes, 0) / grown.length,
    };
  } finally {
    await queue.close();
    for (const worker of workers) await worker[Symbol.asyncDispose]();
    await removeSessions(manager, made);
  }
}

/** The times of a run's request, start and end. */
interface Times {
  asked: number;
  started: number;
  ended: number;
}

async function timesOf({ store }: SessionManager, sessionIds: readonly string[]): Promise<Times[]> {
  const all: Times[] = [];
  await atOnce(sessionIds, async (id) => {
    while (((await store.head(id))?.openRuns.length ?? 0) > 0) await pause(LOOK_MS);
    const times: Times = { asked: Number.NaN, started: Number.NaN, ended: Number.NaN };
    for await (const entry of store.read(id)) {
      const at = Date.parse(entry.timestamp);
      if (entry.type === "run_request") times.asked = at;
      else if (entry.type === "run") times[entry.phase === "started" ? "started" : "ended"] = at;
    }
    all.push(times);
  });
  return all;
}

async function removeSessions({ store }: SessionManager, sessionIds: readonly string[]): Promise<void> {
  await atOnce(sessionIds, async (id) => {
    await store.delete(id);
  });
  await store.purge(new Date(Date.now() + 1).toISOString());
}

/**
 * The overhead of the queue: from a notification to the model, compared with a claim of the same kind of run without
 * one.
 */
async function queueRow({ sizes, progress }: Bench, url: string): Promise<Row> {
  progress("fleet: the queue");
  await using store = await openFleetStore(url, `skein_bench_${randomUUID().slice(0, 8)}`);
  const manager = new SessionManager({ store });
  let heard = (): void => {};
  const complete = async () => {
    heard();
    return { role: "assistant", content: "Done.", stopReason: "stop" } as const;
  };
  const model = { provider: "bench", id: "quick", complete };
  // A unique name, so that no other worker listens to it.
  const name = `talker-${randomUUID().slice(0, 8)}`;
  const agent = createAgent({ name, prompt: "Talk.", model, builtInTools: false });
  const queue = bullmqQueue({ url });
  await using _worker = await startWorker({ manager, queue, agents: [agent], sweepMs: 0, maxRunsPerUser: 1 });
  await using _queue = { [Symbol.asyncDispose]: () => queue.close() };
  let sessionId = "";
  const contender = (begin: () => Promise<unknown>): Contender => ({
    async prepare() {
      ({ sessionId } = await manager.create({ userId: "ann" }));
      await manager.request(sessionId, { agent: name, input: "Hello." });
    },
    async run() {
      const called = new Promise<void>((resolve) => {
        heard = resolve;
      });
      await Promise.all([begin(), called]);
    },
    async finish() {
      await timesOf(manager, [sessionId]);
      await removeSessions(manager, [sessionId]);
    },
  });
  const samples = await race(
    {
      notified: contender(() => queue.notify(sessionId, { runner: name })),
      direct: contender(() => manager.recover(sessionId, () => agent)),
    },
    { rounds: sizes.queueRounds, warmups: sizes.warmups },
  );
  const addedMs = medianMs(samples.notified) - medianMs(samples.direct);
  return {
    section,
    what: `what a queue on Redis adds to a claim, median of ${sizes.queueRounds}`,
    measured: formatMs(addedMs),
    against: `${formatMs(medianMs(samples.direct))}, a claim without a queue`,
    target: below(addedMs, QUEUE_MS_MAX, "ms"),
  };
}
