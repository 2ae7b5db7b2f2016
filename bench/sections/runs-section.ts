import { randomUUID } from "node:crypto";
import { join } from "node:path";
import {
  createAgent,
  drainRuns,
  type Model,
  type ModelReply,
  resumeSession,
  runSessionLoop,
  Session,
  SessionManager,
  type SessionStore,
  SessionTree,
  type Tool,
  type UserBudget,
} from "skein";
import { openPostgresStore } from "skein/postgres";
import { openBareDatabase } from "../bare-database.ts";
import { openFootprint } from "../fleet/footprint.ts";
import { formatCount, formatMs } from "../format.ts";
import { messageOf, messageText } from "../message-of.ts";
import { type Contender, race, type Sample } from "../race.ts";
import { atMost, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { meanMs, median, medianMs, timeRatio } from "../statistics.ts";
import { serverOf } from "../servers/server-kind.ts";
import { openStoreOf } from "../store-kind.ts";

const section = "runs";
const MODEL_MS = 100;
/** How many rounds one value covers, after the warm-up. */
const WINDOW = 40;
const FIRST = 10;
const FORKS = 2000;

/** The cost of a run without its model and tools. */
export const runsSection: Section = {
  name: section,
  async run(bench) {
    return [
      ...(await roundRows(bench)),
      ...(await persistedRows(bench)),
      ...(await recoveryRows(bench)),
      ...(await budgetRows(bench)),
      await concurrentRow(bench),
      await forkRow(bench),
    ];
  },
};

const noop: Tool = {
  schema: { name: "noop", description: "Does nothing.", parameters: { type: "object" } },
  check: (value) => ({ ok: true, value }),
  execute: () => "done",
};

/** Calls the tool in every round but the last, and records the times of its requests. */
function callingModel(rounds: number, text: string | null, asked: number[] = []): Model {
  return {
    provider: "bench",
    id: "bench",
    async complete(): Promise<ModelReply> {
      asked.push(performance.now());
      if (asked.length >= rounds) return { role: "assistant", content: "end", stopReason: "stop" };
      const call = { id: `call-${asked.length}`, name: "noop", arguments: "{}" };
      return { role: "assistant", content: text, toolCalls: [call], stopReason: "tool_calls" };
    },
  };
}

const agent = Session.fromAgentPrompt("You are measured.");
const options = { tools: [noop], builtInTools: false, maxToolRounds: 1_000_000 } as const;

/** The median time from one request to the model to the next, around a round of a run. */
async function roundMs(user: Session, at: number): Promise<number> {
  const asked: number[] = [];
  await runSessionLoop(user, agent, { ...options, model: callingModel(at + WINDOW, null, asked) });
  return median(asked.slice(at, at + WINDOW).map((time, index) => time - (asked[at + index - 1] as number)));
}

async function roundRows(bench: Bench): Promise<Row[]> {
  const { rounds, warmups, roundsLate, rowsInherited } = bench.sizes;
  const short = Session.fromUserMessage("Go on.");
  const inherited = Array.from({ length: rowsInherited }, (_, index) => ({ message: messageOf(index) }));
  const long = Session.of(short.transcript.appendAll(inherited));
  bench.progress("runs: a round at the beginning, late, and after many inherited rows");
  const samples = { early: [] as Sample[], late: [] as Sample[], inherited: [] as Sample[] };
  const measure = { early: [short, FIRST], late: [short, roundsLate], inherited: [long, FIRST] } as const;
  for (let round = -warmups; round < rounds; round++) {
    for (const [name, [user, at]] of Object.entries(measure)) {
      const timeMs = await roundMs(user, at);
      if (round >= 0) samples[name as keyof typeof samples].push({ timeMs, writtenBytes: 0, readBytes: 0 });
    }
  }
  const earlyUs = medianMs(samples.early) * 1000;
  const compared = `${formatMs(medianMs(samples.early))} at round ${FIRST}`;
  const grown = (what: string, of: readonly Sample[]): Row => {
    const ratio = timeRatio(of, samples.early);
    return { section, what, measured: formatMs(medianMs(of)), against: compared, ratio, target: atMost(ratio, 1.2) };
  };
  return [
    {
      section,
      what: `a round with one tool that does nothing, at round ${FIRST}`,
      measured: formatMs(medianMs(samples.early)),
      target: atMost(earlyUs, 16, " µs"),
    },
    grown(`the same at round ${formatCount(roundsLate)}`, samples.late),
    grown(`the same after ${formatCount(rowsInherited)} inherited rows`, samples.inherited),
  ];
}

/** Rows of a stored run, compared with the minimum for the same rows. */
async function persistedRows(bench: Bench): Promise<Row[]> {
  const rows = bench.sizes.appends * 2;
  await using store = await openStoreOf("sqlite", await bench.fixtures.folder("runs"));
  const database = await openBareDatabase(join(await bench.fixtures.folder("bare-runs"), "bare.db"));
  database.exec("CREATE TABLE entry (session TEXT, seq INTEGER, id TEXT, body TEXT, PRIMARY KEY (session, seq))");
  const insert = database.prepare("INSERT INTO entry (session, seq, id, body) VALUES (?, ?, ?, ?)");
  let seq = 0;
  bench.progress("runs: a run kept in sqlite against bare inserts");
  const insertRow = (row: number): void => {
    const body = JSON.stringify({ type: "message", message: messageOf(row) });
    insert.run("a-session", seq++, `entry-${seq}`, body);
  };
  const bare: Contender = {
    async run() {
      for (let row = 0; row < rows; row++) insertRow(row);
    },
  };
  const kept = { repeatable: keptRun(store, rows / 2, true), once: keptRun(store, rows / 2, false) };
  const samples = await race({ bare, byHand: keptByHand(insertRow, rows / 2), ...kept }, bench.sizes);
  database.close();
  const rowOf = (what: string, of: readonly Sample[]): Row => ({
    section,
    what,
    measured: formatMs(medianMs(of) / rows),
    against: `${formatMs(medianMs(samples.bare) / rows)}, bare prepared insert`,
    ratio: timeRatio(of, samples.bare),
  });
  const repeatable = rowOf("a run kept in sqlite, each row", samples.repeatable);
  return [
    { ...repeatable, target: atMost(repeatable.ratio ?? Number.NaN, 2.5) },
    {
      section,
      what: "the same, against a run whose model and tool insert their rows themselves",
      measured: formatMs(medianMs(samples.repeatable) / rows),
      against: `${formatMs(medianMs(samples.byHand) / rows)}, that run, each row`,
      ratio: timeRatio(samples.repeatable, samples.byHand),
    },
    rowOf("the same with a tool that must not run twice: one entry more in each round", samples.once),
  ];
}

/** A run that is not stored, but whose model and tool insert each row with a bare statement. */
function keptByHand(insertRow: (row: number) => void, rounds: number): Contender {
  const inserting: Tool = {
    ...noop,
    execute: () => {
      insertRow(7);
      return messageText(7);
    },
  };
  return {
    async run() {
      const model = callingModel(rounds, messageText(3));
      const complete: Model["complete"] = async (request, given) => {
        const reply = await model.complete(request, given);
        insertRow(3);
        return reply;
      };
      await runSessionLoop(Session.fromUserMessage("Go on."), agent, {
        ...options,
        tools: [inserting],
        model: { ...model, complete },
      });
    },
  };
}

function keptRun(store: SessionStore, rounds: number, idempotent: boolean): Contender {
  const answering: Tool = { ...noop, idempotent, execute: () => messageText(7) };
  return {
    async run() {
      const model = callingModel(rounds, messageText(3));
      await runSessionLoop(Session.fromUserMessage("Go on."), agent, {
        ...options,
        tools: [answering],
        model,
        persist: store,
      });
    },
  };
}

/** What it costs to recover a run in the middle of its rounds, compared with reading its session. */
async function recoveryRows(bench: Bench): Promise<Row[]> {
  // Each round has an answer and a result.
  const rounds = Math.floor(bench.sizes.rowsInherited / 4);
  await using store = await openStoreOf("sqlite", await bench.fixtures.folder("recovery"));
  bench.progress(`runs: recovery of a run of ${formatCount(rounds * 2)} entries`);
  const answering: Tool = { ...noop, idempotent: true, execute: () => messageText(7) };
  const { provider, id, complete } = callingModel(rounds + 1, messageText(3));
  let answers = 0;
  let isAsked = (): void => {};
  const asked = new Promise<void>((resolve) => {
    isAsked = resolve;
  });
  const dying: Model = {
    provider,
    id,
    complete(request, given) {
      answers += 1;
      if (answers <= rounds) return complete(request, given);
      isAsked();
      return new Promise<never>(() => {});
    },
  };
  const loop = { ...options, tools: [answering], model: dying, persist: store };
  const run = runSessionLoop(Session.fromUserMessage("Go on."), agent, loop);
  run.synchronize().catch(() => {});
  await asked;
  await drainRuns({ timeoutMs: 0, ids: [run.id] });
  const sessionId = run.id;
  const samples = await race(
    {
      entries: {
        async run() {
          for await (const entry of store.read(sessionId))
            if (entry.seq < 0) throw new Error("An entry has no position.");
        },
      },
      session: {
        async run() {
          await (await SessionTree.on(store, sessionId)).toSession();
        },
      },
      recovery: {
        async run() {
          await resumeSession({ store, sessionId });
        },
      },
    },
    { rounds: bench.sizes.turnRounds, warmups: bench.sizes.warmups },
  );
  const measured = formatMs(medianMs(samples.recovery));
  const what = `recovering a run of ${formatCount(rounds * 2)} entries in sqlite`;
  const ratio = timeRatio(samples.recovery, samples.session);
  return [
    {
      ...{ section, what, measured, ratio },
      against: `${formatMs(medianMs(samples.session))}, reading its session`,
      target: atMost(ratio, 1.3),
    },
    {
      section,
      what: "the same, against reading the entries alone",
      measured,
      against: `${formatMs(medianMs(samples.entries))}, reading the entries`,
      ratio: timeRatio(samples.recovery, samples.entries),
    },
  ];
}

/** What the budgets of a user add to a round of a run that is kept, in SQLite and PostgreSQL. */
async function budgetRows(bench: Bench): Promise<Row[]> {
  await using sqlite = await openStoreOf("sqlite", await bench.fixtures.folder("budgets"));
  const rows = [await budgetRow(bench, "sqlite", sqlite, "far"), await budgetRow(bench, "sqlite", sqlite, "near")];
  const place = serverOf("postgres");
  if ("problem" in place) {
    const what = "a round of a run kept in postgres, with budgets of its user";
    return [...rows, { section, what, measured: `not measured: ${place.problem}` }];
  }
  await using footprint = await openFootprint(place.url);
  const schema = `skein_bench_${randomUUID().slice(0, 8)}`;
  try {
    await using postgres = await openPostgresStore({ url: place.url, schema });
    return [
      ...rows,
      await budgetRow(bench, "postgres", postgres, "far"),
      await budgetRow(bench, "postgres", postgres, "near"),
    ];
  } finally {
    await footprint.remove(schema);
  }
}

/** Near a limit, the run writes to the ledger in each round. */
async function budgetRow(bench: Bench, kind: string, store: SessionStore, distance: "far" | "near"): Promise<Row> {
  const rounds = bench.sizes.appends;
  const config = { maxSessionsPerUser: 1_000_000, maxTurnsPerSession: 1_000_000 };
  const usage = { inputTokens: 100, outputTokens: 50, totalTokens: 150 };
  const answering: Tool = { ...noop, idempotent: true, execute: () => messageText(7) };
  const runs = (budgets: readonly UserBudget[]): Contender => {
    const manager = new SessionManager({ store, config, ...(budgets.length > 0 && { budgets }) });
    return {
      async run() {
        const model = callingModel(rounds, messageText(3));
        const complete: Model["complete"] = async (...call) => ({
          ...(await model.complete(...call)),
          usage,
          cost: 0.1,
        });
        const paid = createAgent({
          name: "paid",
          prompt: "You are measured.",
          ...options,
          tools: [answering],
          model: { ...model, complete },
        });
        // A user of its own, who is as far from the limits as every other at first.
        await manager.run(paid, "Go on.", { userId: `user-${randomUUID()}` });
      },
    };
  };
  bench.progress(
    `runs: a run kept in ${kind}, with budgets of its user ${distance === "far" ? "far from" : "near"} their limits`,
  );
  const spent = { cost: rounds * 0.1, totalTokens: rounds * usage.totalTokens };
  const budgets: readonly UserBudget[] =
    distance === "far"
      ? [
          { per: "user", window: "1d", cost: 1e9 },
          { per: "user", window: "30d", totalTokens: 1e15 },
        ]
      : [
          { per: "user", window: "1d", cost: spent.cost * 1.5 },
          { per: "user", window: "30d", totalTokens: spent.totalTokens * 1.5 },
        ];
  const samples = await race({ free: runs([]), paid: runs(budgets) }, bench.sizes);
  // The mean, as SQLite copies its write-ahead log into the database in about every other run: neighbouring runs, even two without
  // budgets, differ by that.
  const ratio = meanMs(samples.paid) / meanMs(samples.free);
  const where = distance === "far" ? "far from their limits" : "near their limits";
  return {
    section,
    what: `a round of a run kept in ${kind}, with two budgets of its user ${where}`,
    measured: formatMs(meanMs(samples.paid) / rounds),
    against: `${formatMs(meanMs(samples.free) / rounds)} without budgets`,
    ratio,
    target: atMost(ratio, 1.1),
  };
}

async function concurrentRow(bench: Bench): Promise<Row> {
  const { runsAtOnce, turnRounds } = bench.sizes;
  const slow: Model = {
    provider: "bench",
    id: "bench",
    async complete() {
      await new Promise((resolve) => setTimeout(resolve, MODEL_MS));
      return { role: "assistant", content: "end", stopReason: "stop" };
    },
  };
  const runs = (count: number): Contender => ({
    async run() {
      const user = Session.fromUserMessage("Go on.");
      await Promise.all(
        Array.from({ length: count }, () => runSessionLoop(user, agent, { ...options, model: slow }).synchronize()),
      );
    },
  });
  bench.progress(`runs: ${runsAtOnce} at once`);
  const samples = await race({ one: runs(1), many: runs(runsAtOnce) }, { rounds: turnRounds, warmups: 1 });
  const ratio = timeRatio(samples.many, samples.one);
  return {
    section,
    what: `${formatCount(runsAtOnce)} runs at once, with a model that takes ${MODEL_MS} ms`,
    measured: formatMs(medianMs(samples.many)),
    against: `${formatMs(medianMs(samples.one))}, one run`,
    ratio,
    target: atMost(ratio, 3),
  };
}

async function forkRow(bench: Bench): Promise<Row> {
  const { entriesSmall, entriesLarge } = bench.sizes;
  const sessionOf = (count: number): Session => {
    const rows = Array.from({ length: count }, (_, index) => ({ message: messageOf(index) }));
    return Session.of(Session.create({ kind: "empty" }).transcript.appendAll(rows));
  };
  const forking = (session: Session): Contender => ({
    async run() {
      for (let index = 0; index < FORKS; index++) session.fork();
    },
  });
  bench.progress("runs: fork of a session value");
  const samples = await race(
    { small: forking(sessionOf(entriesSmall)), large: forking(sessionOf(entriesLarge)) },
    bench.sizes,
  );
  const ratio = timeRatio(samples.large, samples.small);
  return {
    section,
    what: `fork of a session value of ${formatCount(entriesLarge)} rows`,
    measured: formatMs(medianMs(samples.large) / FORKS),
    against: `${formatMs(medianMs(samples.small) / FORKS)} of ${formatCount(entriesSmall)} rows`,
    ratio,
    target: atMost(ratio, 2),
  };
}
