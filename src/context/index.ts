export { compact, type CompactOptions } from "../agent/context/compact.ts";
export {
  type ContextInfo,
  type ContextTransform,
  pruneContext,
  type PruneContextLimits,
} from "../agent/context/context-transform.ts";
export { summarizeBranch } from "../agent/context/summarize-branch.ts";
export { TOOL_RESULT_CHARACTERS_MAX } from "../agent/tools/tool-result.ts";
export { contextWindowOf, registerContextWindows } from "../models/context-windows.ts";
export { explainCache, type ExplainCacheOptions } from "../models/explain-cache.ts";
export { costOf, type ModelPrice, priceOf, registerPrices } from "../models/prices.ts";
export {
  COMPACTION_DEFAULTS,
  type CompactionPlan,
  type CompactionSettings,
  contextTokens,
  prepareCompaction,
  shouldCompact,
} from "../session/context/compaction.ts";
export type { ContextPruner, PruneLimits } from "../session/context/context-pruner.ts";
export type { CacheAnswer, CacheCause, CacheReport, SetupField } from "../session/context/cache-report.ts";
export { acceptable, buildContext, type ModelContext } from "../session/context/context.ts";
export type { FileOperations } from "../session/context/file-operations.ts";
export { type CompactionView, inspectCompaction } from "../session/context/compaction.ts";
export type { LoopEdits } from "../agent/loop-options.ts";
export type { ShortenedResults } from "../agent/context/result-shortener.ts";
export type { EditPreview } from "../session/context/edits.ts";
export type { OmitOptions } from "../tree/edit-context.ts";
export {
  RelevanceContextPruner,
  type RelevanceContextPrunerOptions,
  type RelevanceScorer,
  type ScoredQuery,
  type ScoredTurn,
} from "../session/context/relevance-context-pruner.ts";
export { entryTokens, estimateTextTokens, messageTokens, type TextTokenizer } from "../session/context/tokens.ts";
