import { vi } from "vitest";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import { compact } from "../../src/agent/context/compact.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import { explainCache } from "../../src/models/explain-cache.ts";
import { UNLIMITED_SESSIONS } from "../../src/lifecycle/session-config.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { CacheCause, CacheReport } from "../../src/session/context/cache-report.ts";
import { SessionError } from "../../src/session/errors.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import { textOf } from "../../src/session/message.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { type PromptCache, type PromptCacheUsage, promptCache } from "../../src/testing/cache/prompt-cache.ts";
import type { SessionTree } from "../../src/tree/session-tree.ts";
import { cachedModel } from "../cached-model.ts";
import { toolOf } from "../sample-run.ts";
import type { SeededRandom } from "../simulation/seeded-random.ts";

/** A provider, a model of it, how long it keeps its cache, and in which steps it caches (1: at marks). */
export const PROVIDERS = {
  anthropic: { provider: "anthropic", models: ["claude-opus-5", "claude-sonnet-5"], lifetimeMs: 300_000, step: 1 },
  "anthropic for an hour": {
    provider: "anthropic",
    models: ["claude-opus-5", "claude-sonnet-5"],
    lifetimeMs: 3_600_000,
    step: 1,
    lifetime: "1h",
  },
  openai: { provider: "openai", models: ["gpt-5.2", "gpt-5.1"], lifetimeMs: 300_000, step: 128 },
  "openai with breakpoints": { provider: "openai", models: ["gpt-5.6", "gpt-5.7"], lifetimeMs: 1_800_000, step: 1 },
} as const;

type ProviderName = keyof typeof PROVIDERS;

/** The differences of the next run from the first one. */
interface Program {
  readonly instructions: number;
  readonly tool: number;
  readonly extraTool: boolean;
  readonly model: number;
  readonly transforms: boolean;
}

/** A request, and what the world knows about it. */
interface KnownRequest {
  readonly program: Program;
  readonly usage: PromptCacheUsage;
  readonly at: number;
  /** How many events had happened. */
  readonly eventsBefore: number;
  usedAt: number;
}

/** An answer that read less than the provider had cached of the request that it continues. */
export interface Break {
  readonly entryId: string;
  readonly lostTokens: number;
  /** The events since that request that can be the reason. */
  readonly reasons: ReadonlySet<CacheCause["type"]>;
  readonly found: CacheCause | null;
}

interface AnsweredRequest {
  readonly entry: Entry;
  readonly request: KnownRequest;
  readonly sessionId: string;
  readonly byId: ReadonlyMap<string, Entry>;
  readonly found: CacheCause | null;
}

/** The result of a sequence. */
export interface SequenceResult {
  readonly breaks: readonly Break[];
  /** Causes that were given for answers that lost nothing, and are not of another branch or model. */
  readonly falseCauses: number;
  readonly answers: number;
}

const FIRST: Program = { instructions: 0, tool: 0, extraTool: false, model: 0, transforms: false };
const WORDS = "Every rule of the house is written down here, so that nobody has to ask. ";
const MINUTE_MS = 60_000;
/** Longer than the rounds of a run, for which the clock of the test jumps and no lease is renewed. */
const LEASE_MS = 5 * MINUTE_MS;
const DAY_MS = 86_400_000;
/** The window of runs that compact by themselves: a few turns more than the instructions and tools. */
const SMALL_WINDOW = 6_000;

/**
 * Sessions, programs and a provider's emulated cache, to which random things happen. It knows by itself which of these can change
 * the beginning of a request, and compares that with what `explainCache` finds in the log.
 */
export class CacheWorld {
  readonly #random: SeededRandom;
  readonly #store: SessionStore;
  readonly #settings: (typeof PROVIDERS)[ProviderName];
  /** Whether runs shorten old results by themselves, which they may do only where no cache has them. */
  readonly #shortens: boolean;
  /** Whether the window is so small that runs compact by themselves. */
  readonly #compacts: boolean;
  #cache: PromptCache;
  #manager: SessionManager;
  #program: Program = FIRST;
  #sessionId = "";
  readonly #parents = new Map<string, string>();
  #now = Date.UTC(2026, 0, 1, 12);
  /** The script of a run, round by round: the number of calls, or null for a call that needs approval. */
  #rounds: (number | null)[] = [];
  #asked = 0;
  readonly #requests = new Map<string, KnownRequest>();
  readonly #events: { readonly reason: CacheCause["type"]; readonly sessionId: string | null }[] = [];
  /** The programs that went on with runs of others, with the program that began each. */
  readonly #takenOver = new Map<string, Program>();

  constructor(random: SeededRandom, store: SessionStore, provider: ProviderName) {
    this.#random = random;
    this.#store = store;
    this.#settings = PROVIDERS[provider];
    this.#shortens = random.chance(0.3);
    this.#compacts = random.chance(0.3);
    this.#cache = this.#newCache();
    this.#manager = new SessionManager({ store, config: UNLIMITED_SESSIONS });
  }

  async run(steps: number): Promise<SequenceResult> {
    vi.useFakeTimers({ toFake: ["Date"], now: this.#now });
    try {
      const { sessionId } = await this.#manager.create({ userId: "ann", id: `s${this.#random.below(1e9)}` });
      this.#sessionId = sessionId;
      await this.#turn();
      for (let step = 0; step < steps; step++) await this.#step();
      await this.#turn();
      return await this.#result();
    } finally {
      vi.useRealTimers();
    }
  }

  async #step(): Promise<void> {
    const act = this.#random.weighted<() => Promise<void> | void>([
      [8, () => this.#turn()],
      [2, () => this.#restart()],
      [2, () => this.#takeOver()],
      [1, () => this.#fork()],
      [1, () => this.#merge()],
      [2, () => this.#branchAndBack()],
      [1, () => this.#pass(DAY_MS)],
      [1, () => this.#pass(this.#settings.lifetimeMs - MINUTE_MS)],
      [1, () => this.#midnight()],
      [1, () => this.#pass(this.#settings.lifetimeMs + 1000)],
      [2, () => this.#edit()],
      [1, () => this.#undoEdit()],
      [1, () => this.#compact()],
      [1, () => this.#undoCompaction()],
      [2, () => this.#changeProgram()],
      [1, () => this.#loseCache()],
    ]);
    try {
      await act();
    } catch (error) {
      // Some things cannot be done at some times: an edit of what is not on the path, a merge of what is merged.
      if (!(error instanceof SessionError)) throw error;
    }
  }

  #newCache(): PromptCache {
    const { provider, models } = this.#settings;
    return promptCache({ provider, model: models[0], clock: () => this.#now });
  }

  get #lifetime(): { readonly lifetime?: "1h" } {
    return "lifetime" in this.#settings ? { lifetime: this.#settings.lifetime } : {};
  }

  #pass(ms: number): void {
    this.#now += ms;
    vi.setSystemTime(this.#now);
  }

  /** The date changes between two turns, while the cache still has the first one. */
  async #midnight(): Promise<void> {
    this.#pass(DAY_MS - (this.#now % DAY_MS) - MINUTE_MS);
    await this.#turn();
    this.#pass(Math.max(0, DAY_MS - (this.#now % DAY_MS)) % MINUTE_MS);
    await this.#turn();
  }

  /** The agent of a program; what it needs to know of the day is a reminder, and servers list their tools in any order. */
  #agent(program: Program): Agent {
    const { provider, models } = this.#settings;
    const model = cachedModel(
      provider,
      { ask: (body) => this.#cache.ask(body) },
      {
        id: models[program.model] as string,
        ...this.#lifetime,
        ...(this.#compacts && { contextWindow: SMALL_WINDOW }),
        answer: () => this.#answer(),
        onRequest: ({ usage }) => this.#remember(program, usage),
      },
    );
    const look = defineTool({
      name: "look",
      description: `Looks at a file, version ${program.tool}.`,
      parameters: { type: "object" },
      effects: "reads",
      execute: () => "a line of the file\n".repeat(this.#random.below(60)),
    });
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: { type: "object" },
      needsApproval: true,
      execute: () => "paid",
    });
    const extra = defineTool({
      name: "extra",
      description: "Does more.",
      parameters: { type: "object" },
      execute: () => "",
    });
    const servers = ["files", "mail"].flatMap((server) =>
      ["list", "read"].map((name) => ({ ...toolOf(`${server}_${name}`), server })),
    );
    return createAgent({
      name: "clerk",
      prompt: `Version ${program.instructions}. ${WORDS.repeat(80)}`,
      model,
      tools: [...shuffled(servers, this.#random), look, pay, ...(program.extraTool ? [extra] : [])],
      reminders: () => `Today is ${new Date().toISOString().slice(0, 10)}.`,
      builtInTools: false,
      compaction: this.#compacts ? { settings: { keepRecentTokens: 500, reserveTokens: 500 } } : false,
      ...(this.#shortens && { edits: { toolResults: { olderThan: 3, largerThan: 200 } } }),
      ...(program.transforms && { context: [dropOld] }),
    });
  }

  #answer(): { text?: string; calls?: { id: string; name: string }[] } {
    // OpenAI sends more than 15 requests a minute elsewhere.
    this.#pass(5_000);
    this.#asked += 1;
    const round = this.#rounds.shift();
    if (round === undefined) return { text: `a${this.#asked}` };
    const calls = round === null ? ["pay"] : Array.from({ length: round }, () => "look");
    return { calls: calls.map((name, index) => ({ id: `a${this.#asked}-${index}`, name })) };
  }

  #remember(program: Program, usage: PromptCacheUsage): void {
    const at = this.#now;
    const eventsBefore = this.#events.length;
    this.#requests.set(`a${this.#asked}`, { program, usage, at, eventsBefore, usedAt: at });
  }

  async #turn(): Promise<void> {
    this.#pass(1000 * this.#random.below(40));
    this.#rounds = Array.from({ length: this.#random.below(4) }, () => 1 + this.#random.below(3));
    await this.#manager.run(this.#sessionId, this.#agent(this.#program), `Question ${this.#random.below(1000)}?`, {
      actor: "ann",
      leaseMs: LEASE_MS,
    });
  }

  #restart(): void {
    this.#manager = new SessionManager({ store: this.#store, config: UNLIMITED_SESSIONS });
  }

  /** A run waits for an approval, and another version of the program recovers it. */
  async #takeOver(): Promise<void> {
    this.#pass(1000);
    this.#rounds = [1, null, 1];
    const agent = this.#agent(this.#program);
    const run = this.#manager.run(this.#sessionId, agent, "Pay.", {
      actor: "ann",
      park: { afterMs: 0 },
      leaseMs: LEASE_MS,
    });
    const { questions } = await run;
    this.#restart();
    this.#pass(10_000);
    for (const { question } of questions)
      await this.#manager.approve(this.#sessionId, { question }, {}, { actor: "ann" });
    const other: Program = {
      ...this.#program,
      instructions: this.#program.instructions + 100,
      tool: this.#program.tool + 100,
    };
    this.#takenOver.set(JSON.stringify(other), this.#program);
    const recovered = await this.#manager.recover(this.#sessionId, { clerk: this.#agent(other) }, { actor: "ann" });
    await recovered?.run;
  }

  async #fork(): Promise<void> {
    const { sessionId } = await this.#manager.fork(this.#sessionId, "try", { actor: "ann" });
    this.#parents.set(sessionId, this.#sessionId);
    this.#sessionId = sessionId;
  }

  async #merge(): Promise<void> {
    const parent = this.#parents.get(this.#sessionId);
    if (parent === undefined) return;
    if (this.#random.chance(0.5)) await this.#inSession(parent, () => this.#turn());
    await this.#manager.merge(parent, this.#sessionId, { actor: "ann" });
    this.#sessionId = parent;
  }

  async #inSession(sessionId: string, work: () => Promise<void>): Promise<void> {
    const before = this.#sessionId;
    this.#sessionId = sessionId;
    await work();
    this.#sessionId = before;
  }

  async #branchAndBack(): Promise<void> {
    const tree = await this.#tree();
    const { leafId } = tree;
    const answers = (await tree.getBranch()).filter(isFinal);
    if (answers.length < 2) return;
    await tree.branch(this.#random.pick(answers).id);
    await this.#turn();
    if (this.#random.chance(0.6)) await (await this.#tree()).branch(leafId);
  }

  async #edit(): Promise<void> {
    const tree = await this.#tree();
    const said = (await tree.contextEntries()).filter((entry) => entry.type === "message");
    if (said.length === 0) return;
    const target = this.#random.pick(said);
    if (target.type === "message" && target.message.role === "user" && this.#random.chance(0.5))
      await tree.replace(target.id, { role: "user", content: "Short." });
    else await tree.omit(target.id);
  }

  async #undoEdit(): Promise<void> {
    const tree = await this.#tree();
    const edits = (await tree.contextEntries()).filter(({ type }) => type === "context_edit");
    if (edits.length > 0) await tree.undoEdit(this.#random.pick(edits).id);
  }

  async #compact(): Promise<void> {
    const { provider, models } = this.#settings;
    const model = cachedModel(
      provider,
      { ask: (body) => this.#cache.ask(body) },
      {
        id: models[this.#program.model] as string,
        ...this.#lifetime,
        answer: () => {
          this.#pass(5_000);
          return { text: `In short, ${WORDS.repeat(3)}` };
        },
      },
    );
    await compact(await this.#tree(), { model, settings: { keepRecentTokens: 200 } });
  }

  async #undoCompaction(): Promise<void> {
    await (await this.#tree()).undoCompaction();
    this.#events.push({ reason: "compaction", sessionId: this.#sessionId });
  }

  #changeProgram(): void {
    const { instructions, tool, extraTool, model, transforms } = this.#program;
    this.#program = this.#random.pick([
      { ...this.#program, instructions: instructions + 1 },
      { ...this.#program, tool: tool + 1 },
      { ...this.#program, extraTool: !extraTool },
      { ...this.#program, model: 1 - model },
      { ...this.#program, transforms: !transforms },
    ]);
  }

  #loseCache(): void {
    this.#cache = this.#newCache();
    this.#events.push({ reason: "provider", sessionId: null });
  }

  #tree(): Promise<SessionTree> {
    return this.#manager.open(this.#sessionId, { actor: "ann" });
  }

  async #result(): Promise<SequenceResult> {
    const reports: CacheReport[] = [];
    const asked: AnsweredRequest[] = [];
    for (const sessionId of new Set([this.#sessionId, ...this.#parents.keys(), ...this.#parents.values()])) {
      const byId = new Map<string, Entry>();
      for await (const entry of this.#store.read(sessionId)) byId.set(entry.id, entry);
      const report = await explainCache(this.#store, sessionId, { limit: 100_000 });
      reports.push(report);
      for (const { entryId, cause } of report.answers) {
        const entry = byId.get(entryId) as Entry;
        const request = this.#requestOf(entry);
        if (request !== null) asked.push({ entry, request, sessionId, byId, found: cause });
      }
    }
    // A request keeps what it reads in the cache, whichever session it is of.
    const breaks = asked.sort((a, b) => a.request.at - b.request.at).flatMap((one) => this.#breakOf(one) ?? []);
    const lost = new Set(breaks.map(({ entryId }) => entryId));
    const falseCauses = asked.filter(
      ({ entry, found }) => found !== null && !["first", "branch", "model"].includes(found.type) && !lost.has(entry.id),
    ).length;
    return { breaks, falseCauses, answers: asked.length };
  }

  /** Whether an answer lost a part of what it could have read, by what the world knows. */
  #breakOf({ entry, request, sessionId, byId, found }: AnsweredRequest): Break | null {
    const { base, reasons } = this.#baseOf(entry, request, byId, sessionId);
    if (base === null) return null;
    const lostTokens = this.#cachedOf(base) - request.usage.read;
    if (lostTokens < this.#settings.step) {
      base.usedAt = Math.max(base.usedAt, request.at);
      return null;
    }
    if (request.at - base.usedAt >= this.#settings.lifetimeMs) reasons.add("lifetime");
    return { entryId: entry.id, lostTokens, reasons, found };
  }

  #cachedOf({ usage: { read, written, fresh } }: KnownRequest): number {
    const { step } = this.#settings;
    if (step === 1) return read + written;
    const total = read + written + fresh;
    return total < 1024 ? 0 : total - (total % step);
  }

  #requestOf(entry: Entry): KnownRequest | null {
    if (entry.type !== "message" || entry.message.role !== "assistant") return null;
    if (entry.message.metadata?.["mergedFrom"] !== undefined) return null;
    const { content, toolCalls } = entry.message;
    const name = toolCalls?.[0]?.id.split("-")[0] ?? textOf(content);
    return this.#requests.get(name) ?? null;
  }

  /** The nearest request above an answer, to the same model, and what happened in between. */
  #baseOf(
    answer: Entry,
    request: KnownRequest,
    byId: ReadonlyMap<string, Entry>,
    sessionId: string,
  ): { readonly base: KnownRequest | null; readonly reasons: Set<CacheCause["type"]> } {
    const reasons = new Set<CacheCause["type"]>();
    const { model } = this.#sent(request);
    const runsOfOthers = new Set<string>();
    let above = byId.get(answer.parentId ?? "");
    for (; above !== undefined; above = byId.get(above.parentId ?? "")) {
      // What a run shortens by itself is no reason: it may only shorten where the cache is lost anyway. That is so before a
      // compaction, and where someone chose another model, whose requests are all that the run knows of.
      if (above.type === "context_edit" && (above.run === undefined || this.#compacts || runsOfOthers.has(above.run)))
        reasons.add("edit");
      if (above.type === "compaction") reasons.add("compaction");
      const base = this.#requestOf(above);
      if (base !== null && above.run !== undefined && this.#sent(base).model !== model) runsOfOthers.add(above.run);
      if (base === null || this.#sent(base).model !== model) continue;
      const [before, after] = [this.#sent(base), this.#sent(request)];
      if (
        before.instructions !== after.instructions ||
        before.tool !== after.tool ||
        before.extraTool !== after.extraTool
      )
        reasons.add("setup");
      if (before.transforms || after.transforms) reasons.add("transform");
      for (const event of this.#events.slice(base.eventsBefore, request.eventsBefore))
        if (event.sessionId === null || this.#isSameOrAncestor(event.sessionId, sessionId)) reasons.add(event.reason);
      return { base, reasons };
    }
    return { base: null, reasons };
  }

  /** Whether what happened in a session is in the log of another one: that of itself, or of a fork. */
  #isSameOrAncestor(sessionId: string, of: string): boolean {
    const parent = this.#parents.get(of);
    return sessionId === of || (parent !== undefined && this.#isSameOrAncestor(sessionId, parent));
  }

  /** The program whose requests were sent: a run that is taken over sends those of the program that began it. */
  #sent({ program }: KnownRequest): Program {
    return this.#takenOver.get(JSON.stringify(program)) ?? program;
  }
}

/** A transform that changes its mind: it drops another old message each time. */
async function dropOld<T>(messages: readonly T[]): Promise<readonly T[]> {
  const at = 1 + (messages.length % 3);
  return messages.length > 8 ? [...messages.slice(0, at), ...messages.slice(at + 1)] : messages;
}

/** Servers list their tools in any order. */
function shuffled<T>(items: readonly T[], random: SeededRandom): readonly T[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

function isFinal(entry: Entry): boolean {
  return entry.type === "message" && entry.message.role === "assistant" && (entry.message.toolCalls ?? []).length === 0;
}
