import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTree, type EntryDraft, openStore, type SessionTree } from "skein";
import { explainCache } from "skein/context";
import { compareKeys } from "../cache/compare-keys.ts";
import { type EmulatedModel, startEmulator } from "../cache/emulator-server.ts";
import type { TurnsInput } from "../cache/take-turns.ts";
import { formatCount, formatMs } from "../format.ts";
import { type Contender, race } from "../race.ts";
import { atMost, type Row } from "../row.ts";
import { runInChild } from "../run-in-child.ts";
import type { Bench, Section } from "../section.ts";
import { medianMs, timeRatio } from "../statistics.ts";

const section = "cache";
const FACTOR_MAX = 1.05;
const EDITS_MAX = 1.2;

/** Prompt caches: how often a session is paid for, what edits cost a context, and how long the report takes. */
export const cacheSection: Section = {
  name: section,
  async run(bench) {
    return [
      await factorOf(bench, { provider: "anthropic", model: "claude-opus-5" }),
      await factorOf(bench, { provider: "openai", model: "gpt-5.2" }),
      await factorOf(bench, { provider: "openai", model: "gpt-5.6" }),
      ...["gpt-5.2", "gpt-5.6"].flatMap((model) => [5, 50].map((sessions) => keysOf(sessions, model))),
      ...(await contextWithEdits(bench)),
    ];
  },
};

/** Which key of OpenAI's cache is read more often: one for each root, as Skein sends it, or one for each agent. */
function keysOf(sessions: number, model: string): Row {
  const { root, agent, none } = compareKeys(sessions, model);
  const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
  return {
    section,
    what: `read from the cache by ${sessions} sessions at once of one agent, ${model}, a key for each root`,
    measured: percent(root),
    against: `${percent(agent)} with one for each agent, ${percent(none)} without`,
  };
}

async function factorOf(bench: Bench, emulated: EmulatedModel): Promise<Row> {
  const [processes, turns] = [bench.sizes.cacheProcesses, 10];
  bench.progress(`cache: ${processes * turns} turns, ${emulated.model}`);
  const directory = await mkdtemp(join(tmpdir(), "skein-bench-cache-"));
  await using server = await startEmulator(emulated);
  try {
    let sessionId: string | null = null;
    for (let process = 0; process < processes; process++) {
      const input: TurnsInput = { ...emulated, url: server.url, path: join(directory, "skein.db"), sessionId, turns };
      sessionId = await runInChild("turns", input);
    }
    const { newTokens, leastNewTokens, largestTokens, requests } = server.sums;
    const [factor, least] = [newTokens / largestTokens, Math.max(1, leastNewTokens / largestTokens)];
    return {
      section,
      what: `re-write factor of ${processes * turns} turns with tools in ${processes} processes, ${emulated.model}`,
      measured: factor.toFixed(3),
      against: `${least.toFixed(3)} at least, ${formatCount(requests)} requests`,
      ratio: factor / least,
      target: atMost(factor / least, FACTOR_MAX),
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function contextWithEdits(bench: Bench): Promise<Row[]> {
  const { entriesLarge, cacheEdits } = bench.sizes;
  bench.progress(`cache: a context of ${formatCount(entriesLarge)} entries with ${formatCount(cacheEdits)} edits`);
  const store = await openStore("memory:");
  const [plain, edited] = [await createTree(store), await createTree(store)];
  for (const tree of [plain, edited]) {
    for (let at = 0; at < entriesLarge; at += 1000) {
      const drafts = Array.from({ length: Math.min(1000, entriesLarge - at) }, (_, index): EntryDraft => {
        return {
          type: "message",
          id: `${tree.id}-${at + index}`,
          message: { role: "user", content: `Message ${at + index}.` },
        };
      });
      await tree.appendAll(drafts);
    }
  }
  const every = Math.floor(entriesLarge / cacheEdits);
  const message = { role: "user", content: "Short." } as const;
  const edits = Array.from({ length: cacheEdits }, (_, index): EntryDraft => {
    return { type: "context_edit", targetId: `${edited.id}-${index * every}`, message };
  });
  await edited.appendAll(edits);
  const samples = await race({ edited: reading(edited), plain: reading(plain) }, bench.sizes);
  const ratio = timeRatio(samples.edited, samples.plain);
  const report = await race({ report: { run: async () => void (await explainCache(store, plain.id)) } }, bench.sizes);
  await store.close();
  return [
    {
      section,
      what: `context of ${formatCount(entriesLarge)} entries with ${formatCount(cacheEdits)} edits`,
      measured: formatMs(medianMs(samples.edited)),
      against: `${formatMs(medianMs(samples.plain))} without`,
      ratio,
      target: atMost(ratio, EDITS_MAX),
    },
    {
      section,
      what: `explainCache of ${formatCount(entriesLarge)} entries`,
      measured: formatMs(medianMs(report.report)),
    },
  ];
}

function reading(tree: SessionTree): Contender {
  return { run: async () => void (await tree.buildContext()) };
}
