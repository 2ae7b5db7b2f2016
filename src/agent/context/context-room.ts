import { copyJson, type JsonValue } from "../../internal/json.ts";
import type { CompactionPlan, CompactionSettings } from "../../session/context/compaction.ts";
import { SessionError } from "../../session/errors.ts";
import type { HookRunner } from "../../session/context/hooks.ts";
import { isCached } from "./cache-warmth.ts";
import { givenSummary, summarizePlan } from "./compact.ts";
import { describeThrown } from "../describe-thrown.ts";
import type { LoopContext } from "./loop-context.ts";
import type { LoopOptions } from "../loop-options.ts";
import type { ModelRequest } from "../model/model.ts";
import { namedModel } from "../model/named-model.ts";
import { ModelError } from "../model/model-error.ts";
import { withRetries } from "../model/retry.ts";
import { paidModel, type RunSpending } from "../run-spending.ts";
import type { RunLog } from "../persist/run-log.ts";
import { type Summary, spendingOf } from "./summarize.ts";
import { loadTokenizer } from "./tokenizer.ts";
import { untilAborted } from "../follow-abort.ts";

/** The parts of the run that a `ContextRoom` uses. */
export interface RoomParts {
  readonly options: LoopOptions;
  readonly context: LoopContext;
  readonly hooks: HookRunner;
  readonly log: RunLog;
  readonly spending: RunSpending | null;
  readonly inside: <T>(work: () => T) => T;
}

/** A finished summary and the entries that it replaces. */
interface Replacement {
  readonly plan: CompactionPlan;
  readonly summary: Summary;
  readonly details: JsonValue;
}

/** What a run would send next. */
export interface NextRequest {
  /** When the run got its last answer, in milliseconds; null if it has none yet. */
  readonly answeredAt: number | null;
  /** The request; null if its prefix differs from the last one's, or its answer must not be a text. */
  request(): ModelRequest | null;
}

interface FullWindow {
  readonly window: number;
  readonly settings: Partial<CompactionSettings>;
}

/** The approximate number of tokens of a summary and the request for it. */
const SUMMARY_TOKENS = 4_000;

/** Makes room in the context of a run by replacing its older part with a summary. */
export class ContextRoom {
  readonly #parts: RoomParts;
  /** The context size at which to try again, after an attempt that freed nothing. */
  #nextTryTokens = 0;

  constructor(parts: RoomParts) {
    this.#parts = parts;
  }

  /**
   * Compacts if the next answer might not fit; null if it fits. A failure is only reported, because the request may still fit.
   */
  makeBefore(next: NextRequest): Promise<void> | null {
    const full = this.#fullWindow();
    return full === null ? null : this.#make(full, next);
  }

  /** Whether the next request needs a compaction first. */
  get isFull(): boolean {
    return this.#fullWindow() !== null;
  }

  #fullWindow(): FullWindow | null {
    const { options, context } = this.#parts;
    const { compaction } = options;
    const window = options.model?.contextWindow;
    if (window === undefined || compaction === false) return null;
    const settings = settingsFor(window, compaction);
    return context.isFull(window, settings) && context.tokens >= this.#nextTryTokens ? { window, settings } : null;
  }

  async #make({ window, settings }: FullWindow, next: NextRequest): Promise<void> {
    const { context, log } = this.#parts;
    const made = await this.#summarize(settings, () => this.#cachedRequest(window, next)).catch((error: unknown) => {
      log.signal.throwIfAborted();
      process.emitWarning(`The context of run ${log.output.id} was not compacted: ${describeThrown(error)}`);
      return null;
    });
    if (made !== null) return this.#replace(made);
    // An attempt reads the whole context and may cost money, so it is not repeated in every round.
    this.#nextTryTokens = context.tokens + Math.ceil(window / 16);
  }

  /**
   * Compacts after the provider refused a request as too long. @throws the provider's error if nothing can be
   * compacted.
   */
  async makeAfter(overflow: ModelError): Promise<void> {
    const { options, context, log } = this.#parts;
    if (options.compaction === false) throw overflow;
    const window = options.model?.contextWindow ?? context.tokens;
    // The provider counts differently than we do: keep a third of the size that we considered small enough.
    const keepRecentTokens = Math.floor(Math.min(window, context.tokens) / 3);
    const settings = { ...options.compaction?.settings, keepRecentTokens };
    // The cached request was already too long, so the quoted form is used.
    const made = await this.#summarize(settings, async () => null).catch((cause: unknown) => {
      log.signal.throwIfAborted();
      const { message, provider, status } = overflow;
      throw new ModelError("context_overflow", message, { provider, ...(status === null ? {} : { status }), cause });
    });
    if (made === null) throw overflow;
    await this.#replace(made);
  }

  /** Summarizes what a compaction would drop; null if there is nothing to drop, or if a handler cancels. */
  async #summarize(
    settings: Partial<CompactionSettings>,
    cachedRequest: () => Promise<ModelRequest | null>,
  ): Promise<Replacement | null> {
    const { options, context, hooks, log, spending, inside } = this.#parts;
    const { model: own, instructions } = options.compaction === false ? {} : (options.compaction ?? {});
    const model = own === undefined ? options.model : namedModel(own, "compaction");
    const { signal, output } = log;
    const plan = context.plan({ ...settings, tokenizer: settings.tokenizer ?? (await loadTokenizer()) });
    if (plan === null || model === undefined) return null;
    const asked = inside(() => notCancelled(hooks.before("beforeCompact", { sessionId: output.id, plan })));
    const given = await untilAborted(asked, signal);
    if (given === "cancelled") return null;
    if (given !== null) {
      const details = given.details === undefined ? plan.details : copyJson(given.details, "details");
      return { plan, summary: givenSummary(given.summary), details: details as JsonValue };
    }
    const wishes = instructions === undefined ? {} : { instructions };
    const cached = model === options.model ? await cachedRequest() : null;
    const paid = paidModel(model, spending);
    const write = (): Promise<Summary> =>
      untilAborted(summarizePlan(plan, { model: paid, signal, cached, ...wishes }), signal);
    const summary = await withRetries(write, options.retry ?? {}, signal, () => {});
    return { plan, summary, details: plan.details as unknown as JsonValue };
  }

  /** The next request, if the provider has its prefix in the cache, and one more message and the summary fit; else null. */
  async #cachedRequest(window: number, next: NextRequest): Promise<ModelRequest | null> {
    const { options, context, log } = this.#parts;
    const { compaction, model } = options;
    const isQuoted = compaction !== undefined && compaction !== false && compaction.ask === "quoted";
    if (isQuoted || model === undefined || context.tokens + SUMMARY_TOKENS > window) return null;
    const { answer } = context.answeredRows(0);
    if (answer === null || answer.message.role !== "assistant") return null;
    const answeredAt = next.answeredAt ?? Date.parse((await log.timeOf(answer.id)) ?? "");
    return isCached(answer.message, answeredAt, model) ? next.request() : null;
  }

  async #replace({ plan, summary, details }: Replacement): Promise<void> {
    const { context, hooks, log, inside } = this.#parts;
    const { output, signal } = log;
    const entry = context.compact(plan, { summary: summary.text, details, ...spendingOf(summary) });
    await log.note([entry]);
    log.compacted({ id: entry.id, summary: summary.text, keptRows: plan.keep.length });
    const stored = { ...entry, parentId: null, seq: -1, timestamp: new Date().toISOString() };
    await untilAborted(
      inside(() => hooks.after("compact", { sessionId: output.id, entry: stored })),
      signal,
    );
  }
}

async function notCancelled<T>(asked: Promise<T>): Promise<T | "cancelled"> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof SessionError && error.code === "CANCELLED") return "cancelled";
    throw error;
  }
}

/** The settings of a compaction; for a small context window, fractions of it instead of the defaults. */
function settingsFor(
  window: number,
  compaction: Exclude<LoopOptions["compaction"], false>,
): Partial<CompactionSettings> {
  const share = Math.floor(window / 4);
  return { reserveTokens: Math.min(16_384, share), keepRecentTokens: Math.min(20_000, share), ...compaction?.settings };
}
