import type { Model } from "../../agent/model/model.ts";
import { namedModel } from "../../agent/model/named-model.ts";
import { type Summary, spendingOf, summarize as summarizeEntries } from "../../agent/context/summarize.ts";
import { isSummarizable } from "../../agent/context/summary-prompt.ts";
import { applyEdits } from "../../session/context/edits.ts";
import type { Entry, EntryDraft, EntryOf } from "../../session/log/entry.ts";
import { checkKeys, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError } from "../../session/errors.ts";
import { type SessionState, type SessionTurn, turnOf } from "../../session/state/state.ts";
import type { MergeContext, MergeOutcome, MergeStrategy } from "./merge-strategy.ts";

/** Options of a `SummaryMerge`: a model, given itself or by its name as `provider/id`, or a function writes the summary. */
export type SummaryMergeOptions = (
  | { readonly model: Model | string; readonly summarize?: never }
  | { readonly summarize: SummarizeTurns; readonly model?: never }
) & {
  /** Additional instructions for the model. */
  readonly instructions?: string;
  readonly signal?: AbortSignal;
};

const KEYS: KeysOf<SummaryMergeOptions> = { model: true, summarize: true, instructions: true, signal: true };

/** Summarizes turns of a branch. */
export type SummarizeTurns = (turns: readonly SessionTurn[], branch: SessionState) => string | Promise<string>;

/**
 * Appends one summary of a branch instead of its turns, and the variables that it changed.
 *
 * - Turns that were already summarized or merged are left out; merging the branch again appends a summary of the rest.
 * - The cost of the summary is recorded with it. A dry run calls the model as well.
 * - The merge fails with `SUMMARY_FAILED` if the summary is empty, or was not finished by the model.
 */
export class SummaryMerge implements MergeStrategy {
  readonly name = "summary";
  readonly turns = false;
  readonly #options: SummaryMergeOptions;
  readonly #model: Model | null;

  constructor(options: SummaryMergeOptions) {
    const { model, summarize: own } = options ?? {};
    const asksModel = typeof model === "string" || typeof model?.complete === "function";
    if (asksModel === (typeof own === "function")) {
      throw new SessionError(
        "INVALID_OPTION",
        "A summary merge needs either a model or a function that summarizes turns.",
      );
    }
    checkKeys(options, KEYS, "SummaryMerge");
    this.#options = options;
    this.#model = asksModel ? namedModel(model, "SummaryMerge") : null;
  }

  async merge(_parent: SessionState, branch: SessionState, context: MergeContext): Promise<MergeOutcome> {
    const { count, version } = await summarizedSoFar(branch.sessionId, context);
    const isNew = ({ id, seq }: Entry): boolean => seq >= version && !context.merged.has(id);
    const variables = context.newEntries.filter(({ type }) => type === "variables");
    const unsummarized = applyEdits(context.newEntries).filter((entry) => entry.type !== "variables" && isNew(entry));
    const skipped = context.newEntries
      .filter((entry) => entry.type === "message" && !isNew(entry))
      .map(({ id }) => ({ turnId: id, reason: "present" as const }));
    if (!isSummarizable(unsummarized)) return { entries: variables, skipped };
    const { text, ...spending } = await this.#summaryOf(unsummarized, branch);
    const { sessionId, branchName } = branch;
    const summary: EntryDraft = {
      type: "branch_summary",
      id: summaryId(sessionId, count),
      summary: text,
      fromId: null,
      details: { mergedFrom: { sessionId, branchName, version: branch.version } },
      ...spending,
    };
    return { entries: [summary, ...variables], skipped };
  }

  async #summaryOf(entries: readonly Entry[], branch: SessionState): Promise<Summary> {
    const { summarize, instructions, signal } = this.#options;
    if (this.#model !== null) {
      const wishes = instructions === undefined ? {} : { instructions };
      const { text, ...rest } = await summarizeEntries(this.#model, { kind: "branch", entries, ...wishes }, signal);
      return { text, ...spendingOf(rest) };
    }
    const turns = entries.filter((entry): entry is EntryOf<"message"> => entry.type === "message").map(turnOf);
    // The constructor has checked that there is a function if there is no model.
    const text = await (summarize as SummarizeTurns)(turns, branch);
    if (typeof text !== "string" || text.trim() === "") {
      throw new SessionError(
        "SUMMARY_FAILED",
        "The function that summarizes turns returned no text; nothing was changed.",
      );
    }
    return { text };
  }
}

/** The number of the branch's summaries in the parent, and the branch's version at the last one. */
async function summarizedSoFar(
  branchId: string,
  context: MergeContext,
): Promise<{ readonly count: number; readonly version: number }> {
  let version = 0;
  for (let count = 0; ; count++) {
    const entry = await context.findInParent(summaryId(branchId, count));
    if (entry === null) return { count, version };
    version = Math.max(version, versionOf(entry));
  }
}

function summaryId(branchId: string, count: number): string {
  return `${branchId}/summary-${count}`;
}

function versionOf(entry: Entry): number {
  if (entry.type !== "branch_summary") return 0;
  const { mergedFrom } = (entry.details ?? {}) as { mergedFrom?: { version?: unknown } };
  return typeof mergedFrom?.version === "number" ? mergedFrom.version : 0;
}
