import { copyJson, type JsonValue } from "../../internal/json.ts";
import type { CompactionPlan, CompactionSettings } from "../../session/context/compaction.ts";
import { SessionError } from "../../session/errors.ts";
import type { HookRunner } from "../../session/context/hooks.ts";
import { givenSummary, summarizePlan } from "./compact.ts";
import { describeThrown } from "../describe-thrown.ts";
import type { LoopContext } from "./loop-context.ts";
import type { LoopOptions } from "../loop-options.ts";
import { ModelError } from "../model/model-error.ts";
import { withRetries } from "../model/retry.ts";
import type { RunLog } from "../persist/run-log.ts";
import { type Summary, spendingOf } from "./summarize.ts";
import { loadTokenizer } from "./tokenizer.ts";
import { untilAborted } from "../follow-abort.ts";

/** What making room needs of its run. */
export interface RoomParts {
  readonly options: LoopOptions;
  readonly context: LoopContext;
  readonly hooks: HookRunner;
  readonly log: RunLog;
  readonly inside: <T>(work: () => T) => T;
}

/** A summary that is ready to replace what it tells. */
interface Replacement {
  readonly plan: CompactionPlan;
  readonly summary: Summary;
  readonly details: JsonValue;
}

/** Makes room in the context of a run by replacing its older part with a summary. */
export class ContextRoom {
  readonly #parts: RoomParts;
  /** How long the context must be before the next try, after one that made no room. */
  #nextTryTokens = 0;

  constructor(parts: RoomParts) {
    this.#parts = parts;
  }

  /**
   * Makes room when the next answer might not fit; null when it fits. The request may fit all the same, so that a failure
   * is reported only.
   */
  makeBefore(): Promise<void> | null {
    const full = this.#fullWindow();
    return full === null ? null : this.#make(full.window, full.settings);
  }

  /** Whether the next request needs room first. */
  get isFull(): boolean {
    return this.#fullWindow() !== null;
  }

  #fullWindow(): { readonly window: number; readonly settings: Partial<CompactionSettings> } | null {
    const { options, context } = this.#parts;
    const { compaction } = options;
    const window = options.model?.contextWindow;
    if (window === undefined || compaction === false) return null;
    const settings = settingsFor(window, compaction);
    return context.isFull(window, settings) && context.tokens >= this.#nextTryTokens ? { window, settings } : null;
  }

  async #make(window: number, settings: Partial<CompactionSettings>): Promise<void> {
    const { context, log } = this.#parts;
    const made = await this.#summarize(settings).catch((error: unknown) => {
      log.signal.throwIfAborted();
      process.emitWarning(`The context of run ${log.output.id} was not compacted: ${describeThrown(error)}`);
      return null;
    });
    if (made !== null) return this.#replace(made);
    // A try costs what the context contains, and maybe money, so that there is not one in every round.
    this.#nextTryTokens = context.tokens + Math.ceil(window / 16);
  }

  /** Makes room after the provider refused a request as too long. @throws what it was refused with, when there is no room. */
  async makeAfter(overflow: ModelError): Promise<void> {
    const { options, context, log } = this.#parts;
    if (options.compaction === false) throw overflow;
    const window = options.model?.contextWindow ?? context.tokens;
    // The provider counts differently than we do: keep a third of what we thought was small enough.
    const keepRecentTokens = Math.floor(Math.min(window, context.tokens) / 3);
    const settings = { ...options.compaction?.settings, keepRecentTokens };
    const made = await this.#summarize(settings).catch((cause: unknown) => {
      log.signal.throwIfAborted();
      const { message, provider, status } = overflow;
      throw new ModelError("context_overflow", message, { provider, ...(status === null ? {} : { status }), cause });
    });
    if (made === null) throw overflow;
    await this.#replace(made);
  }

  /** The summary of what a compaction would drop; null when there is nothing to drop, or a handler is against it. */
  async #summarize(settings: Partial<CompactionSettings>): Promise<Replacement | null> {
    const { options, context, hooks, log, inside } = this.#parts;
    const { model: own, instructions } = options.compaction === false ? {} : (options.compaction ?? {});
    const model = own ?? options.model;
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
    const write = (): Promise<Summary> => untilAborted(summarizePlan(plan, { model, signal, ...wishes }), signal);
    const summary = await withRetries(write, options.retry ?? {}, signal, () => {});
    return { plan, summary, details: plan.details as unknown as JsonValue };
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

/** The settings of a compaction; in a small window, shares of it instead of the usual amounts. */
function settingsFor(
  window: number,
  compaction: Exclude<LoopOptions["compaction"], false>,
): Partial<CompactionSettings> {
  const share = Math.floor(window / 4);
  return { reserveTokens: Math.min(16_384, share), keepRecentTokens: Math.min(20_000, share), ...compaction?.settings };
}
