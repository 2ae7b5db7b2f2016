import { createHeader, type SessionStore } from "skein";
import { BranchManager, CheckpointManager } from "skein/lifecycle";
import { directoryBytes } from "../directory-bytes.ts";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import { readIoCounters } from "../io-counters.ts";
import { MESSAGE_CHARACTERS, messageText } from "../message-of.ts";
import { type Contender, race } from "../race.ts";
import { atMost, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { settleFiles } from "../settle-files.ts";
import { medianMs, timeRatio } from "../statistics.ts";
import { type DurableKind, openStoreOf, type StoreKind } from "../store-kind.ts";

const section = "lifecycle";
const TURN_CHARACTERS = MESSAGE_CHARACTERS * 2;
const CHECKPOINTS_KEPT = 50;
const WRITTEN_MAX = 1.5;
const GROWTH_MAX = 1.2;
const FORK_MAX = 2;

/** Checkpoints, restores, forks and merges, in short and in long sessions. */
export const lifecycleSection: Section = {
  name: section,
  async run(bench) {
    const rows: Row[] = [];
    for (const kind of ["jsonl", "sqlite"] as const) rows.push(...(await writtenRows(bench, kind)));
    for (const kind of ["memory", "jsonl", "sqlite"] as const) {
      rows.push(...(await checkpointRows(bench, kind)));
      rows.push(await mergeRow(bench, kind));
    }
    return rows;
  },
};

/** The bytes that many turns write with a checkpoint after every few turns. */
async function writtenRows(bench: Bench, kind: DurableKind): Promise<Row[]> {
  const { turnsLarge: turns, checkpointEvery: every } = bench.sizes;
  bench.progress(`lifecycle: bytes of ${turns} turns with checkpoints, ${kind}`);
  const plain = await bytesOf(bench, kind, null);
  const kept = await bytesOf(bench, kind, every);
  const content = turns * TURN_CHARACTERS;
  const what = `${kind}, ${formatCount(turns)} turns of ${formatCount(TURN_CHARACTERS)} B with a checkpoint every ${every}`;
  const written = kept.written / content;
  const grown = kept.grown / content;
  return [
    {
      section,
      what: `${what}, growth of all files`,
      measured: formatBytes(kept.grown),
      against: `${formatBytes(content)} of text`,
      ratio: grown,
      target: atMost(grown, WRITTEN_MAX),
    },
    {
      section,
      what: `${what}, bytes given to write calls`,
      measured: formatBytes(kept.written),
      // A database writes whole pages, several for each transaction, so it is compared with itself.
      against:
        kind === "jsonl" ? `${formatBytes(content)} of text` : `${formatBytes(plain.written)} without checkpoints`,
      ratio: kind === "jsonl" ? written : kept.written / plain.written,
      target: atMost(kind === "jsonl" ? written : kept.written / plain.written, WRITTEN_MAX),
    },
  ];
}

async function bytesOf(
  bench: Bench,
  kind: DurableKind,
  every: number | null,
): Promise<{ readonly written: number; readonly grown: number }> {
  const folder = await bench.fixtures.folder(`${kind}-checkpoints`);
  const store = await openStoreOf(kind, folder);
  await settleFiles(kind, folder);
  const filesBefore = await directoryBytes(folder);
  const before = readIoCounters();
  await fill(store, bench.sizes.turnsLarge, every);
  await store.close();
  await settleFiles(kind, folder);
  const { writtenBytes } = readIoCounters();
  return { written: writtenBytes - before.writtenBytes, grown: (await directoryBytes(folder)) - filesBefore };
}

/** A new session with the given number of turns, with a checkpoint after every few turns or without any. */
async function fill(store: SessionStore, turns: number, every: number | null): Promise<string> {
  const { header } = await store.create(createHeader({ userId: "user" }));
  const checkpoints = new CheckpointManager(store, { maxPerSession: CHECKPOINTS_KEPT });
  for (let turn = 0; turn < turns; turn++) {
    await say(store, header.id, turn);
    if (every !== null && (turn + 1) % every === 0) await checkpoints.create(header.id);
  }
  return header.id;
}

function say(store: SessionStore, sessionId: string, turn: number): Promise<unknown> {
  const content = messageText(turn) + messageText(turn + 1);
  return store.append(sessionId, [
    { type: "message", message: { role: turn % 2 === 0 ? "user" : "assistant", content } },
  ]);
}

/** The time of a checkpoint and of a restore; both sessions have the maximum number of checkpoints. */
async function checkpointRows(bench: Bench, kind: StoreKind): Promise<Row[]> {
  const { turnsLarge, checkpointEvery: every, checkpoints: count } = bench.sizes;
  const contenderOf = async (turns: number): Promise<{ create: Contender; restore: Contender } & AsyncDisposable> => {
    const store = await openStoreOf(kind, await bench.fixtures.folder(`${kind}-turns-${turns}`));
    const sessionId = await fill(store, turns, every);
    const manager = new CheckpointManager(store, { maxPerSession: CHECKPOINTS_KEPT });
    while ((await manager.list(sessionId)).length < CHECKPOINTS_KEPT) await manager.create(sessionId);
    const { id: last } = await manager.create(sessionId);
    return {
      create: {
        async run() {
          for (let index = 0; index < count; index++) await manager.create(sessionId);
        },
      },
      restore: {
        async run() {
          for (let index = 0; index < count; index++) await manager.restore(last, { turns: false });
        },
      },
      [Symbol.asyncDispose]: () => store.close(),
    };
  };
  bench.progress(`lifecycle: checkpoint and restore, ${kind}`);
  await using small = await contenderOf(every);
  await using large = await contenderOf(turnsLarge);
  const rows: Row[] = [];
  for (const [name, what] of [
    ["restore", "restore without its turns"],
    ["create", `checkpoint when ${CHECKPOINTS_KEPT} are kept`],
  ] as const) {
    const samples = await race({ small: small[name], large: large[name] }, bench.sizes);
    const ratio = timeRatio(samples.large, samples.small);
    rows.push({
      section,
      what: `${kind}, ${what}, at turn ${formatCount(turnsLarge)}`,
      measured: formatMs(medianMs(samples.large) / count),
      against: `${formatMs(medianMs(samples.small) / count)} at turn ${every}`,
      ratio,
      target: atMost(ratio, GROWTH_MAX),
    });
  }
  return rows;
}

/** A branch that is forked, gets two turns and is merged. A fork of a JSONL session may copy: it has no target. */
async function mergeRow(bench: Bench, kind: StoreKind): Promise<Row> {
  const { turnsLarge, checkpointEvery, rounds, warmups } = bench.sizes;
  const contenderOf = async (turns: number): Promise<Contender & AsyncDisposable> => {
    const store = await openStoreOf(kind, await bench.fixtures.folder(`${kind}-merge-${turns}`));
    const long = turns === turnsLarge ? await fill(store, turns, null) : null;
    const branches = new BranchManager(store, { maxPerSession: rounds + warmups });
    let sessionId: string;
    return {
      // A separate session for each round, as the short one would not stay short otherwise.
      async prepare() {
        sessionId = long ?? (await fill(store, turns, null));
      },
      async run(round) {
        const branch = await branches.fork(sessionId, `round ${round}`, { turns: false });
        for (let turn = 0; turn < 2; turn++) await say(store, branch.sessionId, turn);
        await branches.merge(sessionId, branch.sessionId, { turns: false });
      },
      [Symbol.asyncDispose]: () => store.close(),
    };
  };
  bench.progress(`lifecycle: fork and merge, ${kind}`);
  await using small = await contenderOf(checkpointEvery);
  await using large = await contenderOf(turnsLarge);
  const samples = await race({ small, large }, { rounds, warmups });
  const ratio = timeRatio(samples.large, samples.small);
  return {
    section,
    what: `${kind}, fork, two turns and merge, at turn ${formatCount(turnsLarge)}`,
    measured: formatMs(medianMs(samples.large)),
    against: `${formatMs(medianMs(samples.small))} at turn ${checkpointEvery}`,
    ratio,
    ...(kind === "jsonl" ? {} : { target: atMost(ratio, FORK_MAX) }),
  };
}
