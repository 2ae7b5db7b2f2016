import { checkOptionsOf } from "../../session/check-arguments.ts";
import type { Entry } from "../../session/log/entry.ts";
import { applyEdits } from "../../session/context/edits.ts";
import { fileOperations } from "../../session/context/file-operations.ts";
import { checkIsTree, type SessionTree } from "../../tree/session-tree.ts";
import { paidModel, withPayer } from "../run-spending.ts";
import type { Model } from "../model/model.ts";
import { namedModel } from "../model/named-model.ts";
import { spendingOf, summarize } from "./summarize.ts";

/**
 * Moves the leaf and appends a summary of the branch that is left, from the common ancestor on. Returns the summary's
 * entry, or null if the branch has nothing to summarize; the leaf moves in both cases.
 */
export async function summarizeBranch(
  tree: SessionTree,
  entryId: string | null,
  options: { readonly model: Model | string; readonly instructions?: string; readonly signal?: AbortSignal },
): Promise<Entry | null> {
  checkIsTree(tree, "summarizeBranch");
  checkOptionsOf(options, { model: true, instructions: true, signal: true }, "summarizeBranch");
  const model = namedModel(options.model, "summarizeBranch");
  const left = await tree.getBranch();
  const target = new Set(entryId === null ? [] : (await tree.getBranch(entryId)).map((entry) => entry.id));
  const entries = applyEdits(left).filter((entry) => !target.has(entry.id));
  if (!entries.some((entry) => entry.type === "message")) {
    await tree.branch(entryId);
    return null;
  }
  const { instructions, signal } = options;
  const request = { kind: "branch", entries, ...(instructions === undefined ? {} : { instructions }) } as const;
  const summary = await withPayer(tree.payer, (spending) => summarize(paidModel(model, spending), request, signal));
  signal?.throwIfAborted();
  return tree.branchWithSummary(entryId, summary.text, fileOperations(entries), spendingOf(summary));
}
