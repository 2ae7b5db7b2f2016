import { type Entry, type EntryOf, isNode } from "../log/entry.ts";
import { firstSummed } from "../log/fold.ts";
import type { SessionHeader } from "../log/header.ts";
import { SHARED_FIELDS, type ToolChoice } from "../log/setup.ts";
import { isMerged } from "../log/merged-turns.ts";
import type { AssistantMessage } from "../message.ts";
import type { Usage } from "../usage.ts";

/** Why a provider read less of a request from its prompt cache than it had cached. */
export type CacheCause =
  /** The first request of its agent. */
  | { readonly type: "first" }
  /** The provider's cache had expired: the earlier request was longer ago than the cache's lifetime. */
  | { readonly type: "lifetime"; readonly gapMs: number; readonly lifetimeMs: number }
  /** This field of the setup differs; `tool` is the first tool that differs. */
  | { readonly type: "setup"; readonly field: SetupField; readonly tool?: string }
  /** This edit changed an earlier message. */
  | { readonly type: "edit"; readonly entryId: string }
  /** This compaction, or the undoing of it, replaced the beginning of the messages. */
  | { readonly type: "compaction"; readonly entryId: string }
  /** The run has a transform, whose changes are not in the log; nothing in the log differs. */
  | { readonly type: "transform" }
  /** The agent's request before this one was on another branch. */
  | { readonly type: "branch" }
  /** The agent's request before this one went to another model, as `provider/id`. */
  | { readonly type: "model"; readonly before: string }
  /** Both requests have the same prefix, so the provider evicted its cache. */
  | { readonly type: "provider" }
  /** The log does not record the content of the requests, for example in an imported session. */
  | { readonly type: "unknown" };

/** A field of a setup. If it changes, the provider cannot use the cache. */
export type SetupField = "tools" | "instructions" | "output" | "thinkingLevel" | "toolChoice" | "providerOptions";

/** How one answer used the provider's prompt cache. */
export interface CacheAnswer {
  readonly entryId: string;
  readonly timestamp: string;
  /** The agent's name, or null. */
  readonly agent: string | null;
  /** As `provider/id`; null if it is not known. */
  readonly model: string | null;
  readonly inputTokens: number;
  /** The cached tokens of the previous request, which the provider could have read. */
  readonly expectedTokens: number;
  /** The tokens that it read from the cache. */
  readonly readTokens: number;
  /** Cached tokens of the previous request that it processed again instead of reading them. */
  readonly rewrittenTokens: number;
  /** Why it read less than expected; null if it did not. */
  readonly cause: CacheCause | null;
}

/** How the answers of a session used their providers' prompt caches, and why some read less than they could. */
export interface CacheReport {
  readonly sessionId: string;
  /** The latest answers, oldest first. */
  readonly answers: readonly CacheAnswer[];
  /** How many answers the sums contain. */
  readonly count: number;
  readonly inputTokens: number;
  readonly readTokens: number;
  /** The tokens of requests, and of compactions, that were not read from a cache. */
  readonly writtenTokens: number;
  /** The tokens of the largest request of each agent, added up. */
  readonly contextTokens: number;
  /** `writtenTokens` divided by `contextTokens`: 1 if each token was processed once; null without a request. */
  readonly rewriteFactor: number | null;
  /** The number of answers that read less than expected, and their missed tokens, by type of cause; the most tokens first. */
  readonly causes: readonly { readonly type: CacheCause["type"]; readonly answers: number; readonly tokens: number }[];
}

/** How many answers a report has, if no other limit is given. */
export const CACHE_ANSWERS_DEFAULT = 1000;

/** The most pairs of agent and model for which a path keeps the latest request. */
const REQUESTS_MAX = 16;

/** How a provider caches the requests to a model. */
export interface CacheRule {
  /** How long it keeps what it caches, unless it is asked for more. */
  readonly lifetimeMs: number;
  /** The granularity, in tokens, of a cache whose writes the provider does not report; null if it reports them. */
  readonly steps: { readonly tokens: number; readonly tokensMin: number } | null;
}

/** The cache of a model, by the names of its provider and itself. */
export type CacheRules = (provider: string, model: string) => CacheRule;

/** Options of a cache report. */
export interface CacheFoldOptions {
  readonly rules: CacheRules;
  /** Instead of the lifetimes of setups and rules. */
  readonly lifetimeMs?: number;
  /** How many answers the report has at most. */
  readonly limit?: number;
}

/** An entry that changed the context of its path, linked to the previous one. */
interface ContextLink<E extends Entry> {
  readonly entry: Pick<E, "id" | "seq" | "run"> & { readonly targetId?: string; readonly undo?: string };
  readonly before: ContextLink<E> | null;
}

/** The state of the fold at a node: the requests on the path to it. */
interface PathState {
  readonly seq: number;
  readonly timestamp: string;
  /** The position of the last entry that models see. */
  readonly saidAt: number;
  readonly edits: ContextLink<EntryOf<"context_edit">> | null;
  readonly compactions: ContextLink<EntryOf<"compaction">> | null;
  /** The latest request on the path, by agent and model. */
  readonly requests: ReadonlyMap<string, AskedRequest>;
}

/** A request that was answered. */
interface AskedRequest {
  readonly model: string | null;
  /** The position of the last entry that the request can contain. */
  readonly lastSeq: number;
  readonly setup: KnownSetup | null;
  readonly runId: string | null;
  readonly isFirstOfRun: boolean;
  readonly edits: PathState["edits"];
  readonly compactionId: string | null;
  readonly rule: CacheRule;
  readonly cachedTokens: number;
  /** When its prefix was last sent. */
  usedAt: number;
}

/** A setup with fingerprints instead of texts, because a log may have many large setups. */
interface KnownSetup {
  readonly agent: string;
  readonly tools: readonly { readonly name: string; readonly print: string }[];
  readonly instructions: string;
  readonly output: string;
  readonly thinkingLevel: string;
  readonly toolChoice: ToolChoice | null;
  readonly providerOptions: string;
  readonly cacheLifetimeMs: number | null;
  readonly transformed: boolean;
}

const ROOT: PathState = {
  seq: -1,
  timestamp: "",
  saidAt: -1,
  edits: null,
  compactions: null,
  requests: new Map(),
};

/**
 * Folds a log, entry by entry, into a `CacheReport`. The cost of an entry does not grow with the log; it depends only on the edits between
 * two requests.
 */
export class CacheFold {
  readonly #header: SessionHeader;
  readonly #rules: CacheRules;
  readonly #lifetimeMs: number | null;
  readonly #limit: number;
  readonly #paths = new Map<string, PathState>();
  readonly #setups = new Map<string, KnownSetup>();
  readonly #undone = new Set<string>();
  /** The time and position of the last claim of each run. */
  readonly #claims = new Map<string, { readonly seq: number; readonly at: number }>();
  readonly #runs = new Set<string>();
  /** The latest request of each agent, on any branch. */
  readonly #latest = new Map<string, AskedRequest>();
  readonly #largest = new Map<string, number>();
  readonly #causes = new Map<CacheCause["type"], { answers: number; tokens: number }>();
  #answers: CacheAnswer[] = [];
  #count = 0;
  #inputTokens = 0;
  #readTokens = 0;
  #writtenTokens = 0;

  constructor(header: SessionHeader, { rules, lifetimeMs, limit }: CacheFoldOptions) {
    this.#header = header;
    this.#rules = rules;
    this.#lifetimeMs = lifetimeMs ?? null;
    this.#limit = limit ?? CACHE_ANSWERS_DEFAULT;
  }

  /** Adds the next entry of the log. */
  add(entry: Entry): void {
    if (entry.type === "run" && entry.phase === "started")
      this.#claims.set(entry.runId, { seq: entry.seq, at: timeOf(entry) });
    if (entry.type === "compaction_undone") this.#undone.add(entry.targetId);
    if (!isNode(entry)) return;
    const above = this.#paths.get(entry.parentId ?? "") ?? ROOT;
    const { seq, timestamp } = entry;
    this.#paths.set(entry.id, { ...above, ...this.#changesOf(entry, above), seq, timestamp });
  }

  /** The report for the added entries. */
  report(): CacheReport {
    const contextTokens = [...this.#largest.values()].reduce((sum, tokens) => sum + tokens, 0);
    return {
      sessionId: this.#header.id,
      answers: this.#answers.slice(-this.#limit),
      count: this.#count,
      inputTokens: this.#inputTokens,
      readTokens: this.#readTokens,
      writtenTokens: this.#writtenTokens,
      contextTokens,
      rewriteFactor: contextTokens === 0 ? null : this.#writtenTokens / contextTokens,
      causes: [...this.#causes]
        .map(([type, sums]) => ({ type, ...sums }))
        .sort((a, b) => b.tokens - a.tokens || (a.type < b.type ? -1 : 1)),
    };
  }

  #changesOf(entry: Entry, above: PathState): Partial<PathState> {
    switch (entry.type) {
      case "setup":
        this.#setups.set(entry.id, this.#known(entry));
        return {};
      case "context_edit":
        return { edits: { entry: linkOf(entry), before: above.edits } };
      case "compaction":
        this.#addCompaction(entry);
        return { compactions: { entry: linkOf(entry), before: above.compactions } };
      case "custom_message":
      case "branch_summary":
        return { saidAt: entry.seq };
      case "message":
        return { saidAt: entry.seq, ...this.#addMessage(entry, above) };
      default:
        return {};
    }
  }

  #known(setup: EntryOf<"setup">): KnownSetup {
    const [instructions, tools, output] = SHARED_FIELDS.map((field) =>
      this.#setups.get(setup.unchanged?.[field] ?? ""),
    );
    const { agent, thinkingLevel = "", toolChoice = null, providerOptionsDigest = "", transformed = false } = setup;
    const { cacheLifetimeMs = null } = setup;
    const text = setup.instructions ?? setup.instructionsDigest;
    return {
      agent,
      tools: setup.tools?.map((tool) => ({ name: tool.name, print: printOf(tool) })) ?? tools?.tools ?? [],
      instructions: text === undefined ? (instructions?.instructions ?? "") : printOf(text),
      output: setup.output === undefined ? (output?.output ?? "") : printOf(setup.output),
      thinkingLevel,
      toolChoice,
      providerOptions: providerOptionsDigest,
      cacheLifetimeMs,
      transformed,
    };
  }

  #addCompaction({ usage, seq }: EntryOf<"compaction">): void {
    if (usage === undefined || seq < this.#firstOwn) return;
    this.#writtenTokens += Math.max(0, usage.inputTokens - (usage.cacheReadTokens ?? 0));
  }

  /** The inherited requests of a fork are in the report of its source. An import has no other. */
  get #firstOwn(): number {
    return this.#header.forkedFrom === null ? 0 : firstSummed(this.#header);
  }

  #addMessage(entry: EntryOf<"message">, above: PathState): Partial<PathState> {
    const { message } = entry;
    if (isMerged(message) || message.role !== "assistant" || message.usage === undefined) return {};
    const { usage } = message;
    // A later part of an answer that another program writes in parts; its first part counts the request.
    if (usage.inputTokens === 0) return {};
    const setup = this.#setups.get(entry.setup ?? "") ?? null;
    const agent = setup?.agent ?? message.agent ?? null;
    const model = modelOf(message);
    const rule = this.#rules(message.provider ?? "", message.model ?? "");
    const key = JSON.stringify([agent, model]);
    const claim = this.#claims.get(entry.run ?? "");
    const startedAt = Math.min(timeOf(entry), Math.max(timeOf(above), claim?.at ?? 0));
    const base = above.requests.get(key) ?? null;
    const asked: AskedRequest = {
      model,
      lastSeq: above.seq,
      setup,
      runId: entry.run ?? null,
      isFirstOfRun: entry.run !== undefined && !this.#runs.has(entry.run),
      edits: editsBefore(entry, above, claim?.seq ?? -1),
      compactionId: this.#compactionIn(above),
      rule,
      cachedTokens: cachedTokensOf(rule, usage),
      usedAt: startedAt,
    };
    if (entry.run !== undefined) this.#runs.add(entry.run);
    if (entry.seq >= this.#firstOwn) this.#explain({ entry, usage, agent, asked, base, above });
    // A read renews the lifetime of the cache.
    const isRead = base !== null && (usage.cacheReadTokens ?? 0) >= base.cachedTokens - slackOf(rule);
    if (isRead) base.usedAt = Math.max(base.usedAt, startedAt);
    this.#latest.set(agent ?? "", asked);
    const requests = new Map(above.requests);
    requests.delete(key);
    requests.set(key, asked);
    if (requests.size > REQUESTS_MAX) requests.delete(requests.keys().next().value as string);
    return { requests };
  }

  #compactionIn(above: PathState): string | null {
    let link = above.compactions;
    while (link !== null && this.#undone.has(link.entry.id)) link = link.before;
    return link?.entry.id ?? null;
  }

  #explain({ entry, usage, agent, asked, base, above }: Answered): void {
    const { inputTokens } = usage;
    const readTokens = Math.min(usage.cacheReadTokens ?? 0, inputTokens);
    const latest = this.#latest.get(agent ?? "") ?? null;
    const { cause, expectedTokens } = this.#compare({ readTokens, asked, base, latest, above });
    const rewrittenTokens = Math.max(0, Math.min(expectedTokens, inputTokens) - readTokens);
    const { id: entryId, timestamp } = entry;
    const { model } = asked;
    const row = { entryId, timestamp, agent, model, inputTokens, expectedTokens, readTokens, rewrittenTokens, cause };
    this.#answers.push(row);
    if (this.#answers.length > 2 * this.#limit) this.#answers = this.#answers.slice(-this.#limit);
    this.#count += 1;
    this.#inputTokens += inputTokens;
    this.#readTokens += readTokens;
    this.#writtenTokens += inputTokens - readTokens;
    this.#largest.set(agent ?? "", Math.max(this.#largest.get(agent ?? "") ?? 0, inputTokens));
    if (cause === null) return;
    const sums = this.#causes.get(cause.type) ?? { answers: 0, tokens: 0 };
    this.#causes.set(cause.type, { answers: sums.answers + 1, tokens: sums.tokens + rewrittenTokens });
  }

  /**
   * The tokens that could have been read from the cache, and why they were not. `base` is the request that this one continues: the nearest
   * one above it of the
   * same agent and model. `latest` is the agent's request before this one.
   */
  #compare(pair: Compared): { readonly cause: CacheCause | null; readonly expectedTokens: number } {
    const { readTokens, asked, base, latest, above } = pair;
    if (latest === null) return { cause: { type: "first" }, expectedTokens: 0 };
    const slack = slackOf(asked.rule);
    const ofBase = base?.cachedTokens ?? 0;
    if (base !== null && readTokens < ofBase - slack)
      return { cause: this.#difference(base, asked, above), expectedTokens: ofBase };
    if (latest === base || readTokens >= latest.cachedTokens - slack) return { cause: null, expectedTokens: ofBase };
    const expectedTokens = latest.cachedTokens;
    if (latest.model !== asked.model) return { cause: { type: "model", before: latest.model ?? "" }, expectedTokens };
    return { cause: { type: "branch" }, expectedTokens };
  }

  /** Why the prefix of an earlier request is not in the cache. The causes are tested in the order in which providers read a request. */
  #difference(base: AskedRequest, asked: AskedRequest, above: PathState): CacheCause {
    const gapMs = asked.usedAt - base.usedAt;
    const lifetimeMs = this.#lifetimeMs ?? base.setup?.cacheLifetimeMs ?? asked.rule.lifetimeMs;
    if (gapMs >= lifetimeMs) return { type: "lifetime", gapMs, lifetimeMs };
    const setup = setupCause(base, asked);
    if (setup !== null) return setup;
    if (asked.compactionId !== base.compactionId)
      return { type: "compaction", entryId: asked.compactionId ?? (base.compactionId as string) };
    const entryId = this.#editBetween(base, above);
    if (entryId !== null) return { type: "edit", entryId };
    if (asked.setup?.transformed === true) return { type: "transform" };
    return { type: base.setup === null || asked.setup === null ? "unknown" : "provider" };
  }

  /** The edit of the first message that changed since a request; null if no message of the request has changed. */
  #editBetween(base: AskedRequest, above: PathState): string | null {
    const undone = new Set<string>();
    const changed: { readonly id: string; readonly at: number }[] = [];
    for (let link = above.edits; link !== null && link !== base.edits; link = link.before) {
      const { id, undo, targetId, seq } = link.entry;
      if (undone.has(id)) continue;
      if (undo !== undefined) undone.add(undo);
      const at = this.#paths.get(targetId ?? undo ?? "")?.seq ?? seq;
      // Ignores edits that were both made and undone since then.
      const isOfBefore = undo === undefined || at <= (base.edits?.entry.seq ?? -1);
      if (isOfBefore && at <= base.lastSeq) changed.push({ id, at });
    }
    return changed.sort((a, b) => a.at - b.at)[0]?.id ?? null;
  }
}

interface Answered {
  readonly entry: EntryOf<"message">;
  readonly usage: Usage;
  readonly agent: string | null;
  readonly asked: AskedRequest;
  readonly base: AskedRequest | null;
  readonly above: PathState;
}

interface Compared {
  readonly readTokens: number;
  readonly asked: AskedRequest;
  readonly base: AskedRequest | null;
  readonly latest: AskedRequest | null;
  readonly above: PathState;
}

function linkOf(entry: EntryOf<"context_edit"> | EntryOf<"compaction">): ContextLink<Entry>["entry"] {
  const { id, seq, run } = entry;
  const stamp = run === undefined ? { id, seq } : { id, seq, run };
  if (entry.type === "compaction") return stamp;
  const { targetId, undo } = entry;
  return { ...stamp, ...(targetId === undefined ? {} : { targetId }), ...(undo === undefined ? {} : { undo }) };
}

/**
 * The edits that were in force when an answer was requested. An edit directly above the answer was made after the request, unless the run
 * made
 * it or was claimed since.
 */
function editsBefore(answer: Entry, above: PathState, claimedAt: number): PathState["edits"] {
  let link = above.edits;
  while (link !== null && link.entry.seq > above.saidAt && link.entry.seq > claimedAt) {
    if (answer.run === undefined || link.entry.run === answer.run) break;
    link = link.before;
  }
  return link;
}

function setupCause(base: AskedRequest, asked: AskedRequest): CacheCause | null {
  const [before, after] = [base.setup, asked.setup];
  if (before === null || after === null) return null;
  const tool = differingTool(before.tools, after.tools);
  if (tool !== null) return { type: "setup", field: "tools", tool };
  for (const field of ["instructions", "output", "thinkingLevel"] as const)
    if (before[field] !== after[field]) return { type: "setup", field };
  if (JSON.stringify(choiceOf(base)) !== JSON.stringify(choiceOf(asked))) return { type: "setup", field: "toolChoice" };
  return before.providerOptions === after.providerOptions ? null : { type: "setup", field: "providerOptions" };
}

/** The first tool that two requests differ in; null if they have the same ones in the same order. */
function differingTool(before: KnownSetup["tools"], after: KnownSetup["tools"]): string | null {
  const names = new Set(after.map(({ name }) => name));
  for (let index = 0; index < Math.max(before.length, after.length); index++) {
    const [old, now] = [before[index], after[index]];
    if (old?.print === now?.print) continue;
    return old !== undefined && !names.has(old.name) ? old.name : (now?.name ?? old?.name ?? null);
  }
  return null;
}

/** The tool choice of a request. A choice that forces a call is sent only in the first round of a run. */
function choiceOf({ setup, isFirstOfRun }: AskedRequest): ToolChoice | null {
  const choice = setup?.toolChoice ?? null;
  return choice === "none" || isFirstOfRun ? choice : null;
}

/** A fingerprint of a text or JSON value, sensitive to the order of keys. It is not collision-resistant against an attacker. */
function printOf(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  let [a, b] = [0x811c9dc5, 0x1000193];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x5bd1e995) + index;
  }
  return `${text.length}-${(a >>> 0).toString(36)}-${(b >>> 0).toString(36)}`;
}

function modelOf({ provider, model }: AssistantMessage): string | null {
  return model === undefined ? null : `${provider ?? ""}/${model}`;
}

/** The tolerance in tokens: a request that misses less than one step of the cache counts as a full hit. */
function slackOf({ steps }: CacheRule): number {
  return steps === null ? 0 : steps.tokens - 1;
}

/** The number of tokens that the provider has cached after a request. */
function cachedTokensOf({ steps }: CacheRule, usage: Usage): number {
  const { inputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage;
  if (steps === null) return Math.min(cacheReadTokens + cacheWriteTokens, inputTokens);
  return inputTokens < steps.tokensMin ? 0 : inputTokens - (inputTokens % steps.tokens);
}

function timeOf({ timestamp }: { readonly timestamp: string }): number {
  return timestamp === "" ? 0 : Date.parse(timestamp);
}
