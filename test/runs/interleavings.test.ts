import { describe, expect, test } from "vitest";
import type { Entry } from "../../src/session/log/entry.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { makeDirectory } from "../faults/jsonl-support.ts";
import { backends, kindOf } from "../store-backends.ts";
import { type Interleaving, interleave, type ObservedClaim } from "./interleaving.ts";
import { newRun, RunsFold, stepRun } from "../../src/session/log/run-fold.ts";

const HEADER = { id: "s", forkedFrom: null };

/**
 * How many orders are tried on each store. Most are tried where that is quick, because the tested code is above the
 * stores.
 */
const SEEDS: Readonly<Record<string, number>> = { memory: 60, jsonl: 8, sqlite: 8, postgres: 4, redis: 4 };

describe.each(backends)(
  "runs in $name, while others append, cancel, answer and abandon them in any order",
  ({ name, open }) => {
    const seeds = SEEDS[kindOf(name)] as number;
    test.each(Array.from({ length: seeds }, (_, index) => index + 1))(
      "leave a whole log, tear no call from its results, lose no answer and do nothing twice (seed %i)",
      async (seed) => {
        const store = await open(await makeDirectory());
        try {
          const played = await interleave(store, { seed, moves: seed % 2 === 0 });
          expect([played.unexpected, played.torn]).toEqual([[], []]);
          expect(problemsOf(played)).toEqual([]);
          for (const claim of played.claims) checkClaim(claim, played);
          await checkHeadIsFold(store, "s");
        } finally {
          await store.close();
        }
      },
    );
  },
);

/** The listeners of a claim get the events that a fold of the log gives, and its process ends with the state of that fold. */
function checkClaim({ runId, events, last }: ObservedClaim, { entries, moved }: Interleaving): void {
  const { state, position } = last();
  // A claim that ends before its start is recorded has no events.
  const [first, end] = events[0] === undefined ? [0, -1] : [events[0].seq, position];
  // A run that is resumed after a user moved the leaf continues with the answer on that path, not with its latest answer.
  const fold = new RunsFold(HEADER, moved ? (state.answer?.id ?? null) : null);
  const recorded: unknown[] = [];
  for (const entry of entries.slice(0, position + 1)) {
    const before = fold.states.get(runId) ?? newRun(runId);
    const { event } = stepRun(before, entry, HEADER);
    if (event !== null && entry.seq >= first && entry.seq <= end) recorded.push({ seq: entry.seq, event });
    fold.take(entry);
    if (entry.seq === position) expect(plain(fold.states.get(runId))).toEqual(plain(state));
  }
  expect(plain(events)).toEqual(plain(recorded));
}

/** Without the thrown value, which only the process has. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** The forbidden results, according to the log and the executed calls. */
function problemsOf({ entries, effects, moved }: Interleaving): string[] {
  const once = effects.filter((line) => !line.endsWith(" look"));
  const twice = once.filter((line, index) => once.indexOf(line) !== index).map((line) => `${line} was done twice`);
  const path = new Set(activePath(entries).map(({ id }) => id));
  const lost = entries
    .filter((entry) => isAnswer(entry) && !moved && !path.has(entry.id))
    .map(({ id }) => `${id} is lost`);
  return [...twice, ...lost, ...endsOf(entries)];
}

/** Runs that started and did not end exactly once. */
function endsOf(entries: readonly Entry[]): string[] {
  const runs = entries.filter((entry) => entry.type === "run");
  const ids = [...new Set(runs.map(({ runId }) => runId))];
  return ids.flatMap((runId) => {
    const ends = runs.filter((run) => run.runId === runId && run.phase !== "started").length;
    const stopped = entries.some((entry) => entry.type === "cancel" && entry.runId === runId);
    return ends === 1 || (ends === 0 && stopped) ? [] : [`run ${runId} has ${ends} ends`];
  });
}

function isAnswer(entry: Entry): boolean {
  return entry.type === "message" && entry.message.role === "assistant" && entry.message.content === "done";
}

function activePath(entries: readonly Entry[]): Entry[] {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const path: Entry[] = [];
  const leafId = entries.reduce<string | null>((leaf, entry) => {
    if (entry.type === "leaf") return entry.targetId;
    return ["message", "variables", "setup"].includes(entry.type) && entry.parentId === leaf ? entry.id : leaf;
  }, null);
  for (let entry = byId.get(leafId ?? ""); entry !== undefined; entry = byId.get(entry.parentId ?? ""))
    path.unshift(entry);
  return path;
}
