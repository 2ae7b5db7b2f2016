import { checkArgument, checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { type CompactionPlan, type CompactionSettings, prepareCompaction } from "../../session/context/compaction.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionHooks } from "../../session/context/hooks.ts";
import { addCost, addUsage } from "../../session/usage.ts";
import { checkIsTree, type SessionTree } from "../../tree/session-tree.ts";
import { paidModel, withPayer } from "../run-spending.ts";
import { acceptable, messagesOf } from "../../session/context/context.ts";
import { ModelError } from "../model/model-error.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { namedModel } from "../model/named-model.ts";
import { loggedRequest } from "./logged-request.ts";
import { type Spending, type Summary, spendingOf, summarize, summarizeCached } from "./summarize.ts";
import { summaryQuestion, isSummarizable } from "./summary-prompt.ts";
import { countAhead } from "./tokenizer.ts";

/** Options of a compaction. */
export interface CompactOptions {
  /** The model that writes the summary, or its name as `provider/id`. */
  readonly model: Model | string;
  readonly settings?: Partial<CompactionSettings>;
  /** Topics to which the summary should pay particular attention. */
  readonly instructions?: string;
  readonly signal?: AbortSignal;
  /**
   * How the model is asked. How to ask for the summary. Default: if the provider has the next turn's request in its cache, that request
   * with one more message. This needs a last answer of this model that used a cache, less than five minutes ago, and a log that records the
   * whole request. Otherwise, and with `"quoted"`: the conversation as quoted text.
   */
  readonly ask?: "quoted";
  /** Handlers that run after those of the tree. */
  readonly hooks?: SessionHooks | readonly SessionHooks[];
}

const COMPACT_KEYS: KeysOf<CompactOptions> = {
  model: true,
  settings: true,
  instructions: true,
  signal: true,
  ask: true,
  hooks: true,
};

/**
 * Replaces the older part of the context by a summary. Returns the new entry, or null if there is nothing to summarize.
 * The log keeps the history, and `undoCompaction` brings it back into the context.
 *
 * @throws {SessionError} `SUMMARY_FAILED` or `CANCELLED`, with nothing appended; `CONFLICT` if the leaf moved in the
 * meantime.
 */
export async function compact(tree: SessionTree, options: CompactOptions): Promise<Entry | null> {
  checkIsTree(tree, "compact");
  checkOptionsOf(options, COMPACT_KEYS, "compact");
  const model = namedModel(options.model, "compact");
  checkAsk(options.ask, "compact");
  const hooks = options.hooks === undefined ? tree.hooks : tree.hooks.with([options.hooks].flat());
  const path = await tree.contextEntries();
  const tokenizer = await countAhead(path, options.settings?.tokenizer);
  const plan = prepareCompaction(path, { ...options.settings, tokenizer, undone: tree.head.undone });
  if (plan === null) return null;
  const given = await hooks.before("beforeCompact", { sessionId: tree.id, plan });
  const cached = options.ask === "quoted" ? null : await loggedRequest(tree, path, model);
  const summary =
    given === null
      ? await withPayer(tree.payer, (spending) =>
          summarizePlan(plan, { ...options, cached, model: paidModel(model, spending) }),
        )
      : givenSummary(given.summary);
  options.signal?.throwIfAborted();
  const entry = await tree.appendIf(
    {
      type: "compaction",
      summary: summary.text,
      firstKeptEntryId: plan.firstKeptEntryId,
      tokensBefore: plan.tokensBefore,
      details: given?.details ?? plan.details,
      ...spendingOf(summary),
    },
    async () => {
      // Turns appended in the meantime are kept unchanged. If the leaf moved to another branch, the summary no longer applies.
      if (await tree.isActive(plan.firstKeptEntryId)) return;
      throw new SessionError(
        "CONFLICT",
        `The leaf of session ${tree.id} moved to another branch while it was being compacted; nothing was changed.`,
      );
    },
  );
  await hooks.after("compact", { sessionId: tree.id, entry });
  return entry;
}

/** @throws {SessionError} `INVALID_OPTION` for a value of `ask` other than `"quoted"`. */
export function checkAsk(ask: unknown, call: string): void {
  checkArgument(ask === undefined || ask === "quoted", ask, call, '"quoted" or nothing in ask');
}

/** The summary that a handler supplied. @throws {SessionError} `SUMMARY_FAILED` for an empty one. */
export function givenSummary(text: string): Summary {
  if (typeof text === "string" && text.trim() !== "") return { text };
  throw new SessionError("SUMMARY_FAILED", "A beforeCompact handler gave an empty summary; nothing was changed.");
}

/** How to ask for the summary of a plan. */
export interface SummaryAsking extends Pick<CompactOptions, "instructions" | "signal"> {
  readonly model: Model;
  /** The request that the provider has cached; null to ask with the conversation as quoted text. */
  readonly cached: ModelRequest | null;
}

/** Asks a model for the summary of the part that a plan drops. */
export async function summarizePlan(plan: CompactionPlan, asking: SummaryAsking): Promise<Summary> {
  const { model, instructions, signal, cached } = asking;
  if (cached === null) return summarizeQuoted(plan, asking);
  const kept = acceptable(plan.keep.flatMap(messagesOf)).length;
  const first = await summarizeCached(model, cached, summaryQuestion(kept, instructions), signal).catch(
    (error: unknown) => {
      // The provider's token count differs from ours; the quoted form is shorter.
      if (error instanceof ModelError && error.kind === "context_overflow") return NOTHING;
      throw error;
    },
  );
  if (first.text !== null) return { ...first, text: first.text };
  return withSpending(await summarizeQuoted(plan, asking), first);
}

const NOTHING: Spending & { readonly text: null } = { text: null };

async function summarizeQuoted(
  plan: CompactionPlan,
  { model, instructions, signal }: Omit<SummaryAsking, "cached">,
): Promise<Summary> {
  const given = instructions === undefined ? {} : { instructions };
  const parts: Summary[] = [];
  if (isSummarizable(plan.summarize)) {
    parts.push(
      await summarize(
        model,
        { kind: "history", entries: plan.summarize, previousSummary: plan.previousSummary, ...given },
        signal,
      ),
    );
  } else if (plan.previousSummary !== null) parts.push({ text: plan.previousSummary });
  if (isSummarizable(plan.turnPrefix)) {
    const prefix = await summarize(model, { kind: "turn", entries: plan.turnPrefix, ...given }, signal);
    parts.push({ ...prefix, text: `## The turn under way\n${prefix.text}` });
  }
  return parts.reduce((whole, part) =>
    withSpending({ text: `${whole.text}\n\n${part.text}`, ...spendingOf(whole) }, part),
  );
}

/** Adds the cost of another request to a summary. */
function withSpending(summary: Summary, other: Spending): Summary {
  return {
    text: summary.text,
    ...spendingOf({
      ...(summary.usage === undefined ? other : { usage: addUsage(summary.usage, other.usage) }),
      ...(summary.cost === undefined && other.cost === undefined
        ? {}
        : { cost: addCost(summary.cost ?? 0, other.cost) }),
    }),
  };
}
