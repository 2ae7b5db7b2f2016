import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { type CompactionPlan, type CompactionSettings, prepareCompaction } from "../../session/context/compaction.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionHooks } from "../../session/context/hooks.ts";
import { addCost, addUsage } from "../../session/usage.ts";
import { checkIsTree, type SessionTree } from "../../tree/session-tree.ts";
import { checkIsModel, type Model } from "../model/model.ts";
import { type Summary, spendingOf, summarize } from "./summarize.ts";
import { tellsAnything } from "./summary-prompt.ts";
import { countAhead } from "./tokenizer.ts";

/** Options of a compaction. */
export interface CompactOptions {
  readonly model: Model;
  readonly settings?: Partial<CompactionSettings>;
  /** What the summary should pay particular attention to. */
  readonly instructions?: string;
  readonly signal?: AbortSignal;
  /** Handlers that run after the tree's own. */
  readonly hooks?: SessionHooks | readonly SessionHooks[];
}

const COMPACT_KEYS: KeysOf<CompactOptions> = {
  model: true,
  settings: true,
  instructions: true,
  signal: true,
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
  checkIsModel(options.model, "compact");
  const hooks = options.hooks === undefined ? tree.hooks : tree.hooks.with([options.hooks].flat());
  const path = await tree.contextEntries();
  const tokenizer = await countAhead(path, options.settings?.tokenizer);
  const plan = prepareCompaction(path, { ...options.settings, tokenizer, undone: tree.head.undone });
  if (plan === null) return null;
  const given = await hooks.before("beforeCompact", { sessionId: tree.id, plan });
  const summary = given === null ? await summarizePlan(plan, options) : givenSummary(given.summary);
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
      // Turns appended in the meantime are kept unchanged. But if the leaf moved to another branch, the summary would
      // not fit.
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

/** The summary that a handler supplied. @throws {SessionError} `SUMMARY_FAILED` for an empty one. */
export function givenSummary(text: string): Summary {
  if (typeof text === "string" && text.trim() !== "") return { text };
  throw new SessionError("SUMMARY_FAILED", "A beforeCompact handler gave an empty summary; nothing was changed.");
}

/** Asks a model for the summary of the entries that a plan drops. */
export async function summarizePlan(
  plan: CompactionPlan,
  { model, instructions, signal }: Pick<CompactOptions, "model" | "instructions" | "signal">,
): Promise<Summary> {
  const wishes = instructions === undefined ? {} : { instructions };
  const parts: Summary[] = [];
  if (tellsAnything(plan.summarize)) {
    parts.push(
      await summarize(
        model,
        { kind: "history", entries: plan.summarize, previousSummary: plan.previousSummary, ...wishes },
        signal,
      ),
    );
  } else if (plan.previousSummary !== null) parts.push({ text: plan.previousSummary });
  if (tellsAnything(plan.turnPrefix)) {
    const prefix = await summarize(model, { kind: "turn", entries: plan.turnPrefix, ...wishes }, signal);
    parts.push({ ...prefix, text: `## The turn under way\n${prefix.text}` });
  }
  return parts.reduce((whole, part) => ({
    text: `${whole.text}\n\n${part.text}`,
    ...spendingOf({
      ...(whole.usage === undefined ? part : { usage: addUsage(whole.usage, part.usage) }),
      ...(whole.cost === undefined && part.cost === undefined ? {} : { cost: addCost(whole.cost ?? 0, part.cost) }),
    }),
  }));
}
