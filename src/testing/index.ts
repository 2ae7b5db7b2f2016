export { type PromptCache, promptCache, type PromptCacheInit, type PromptCacheUsage } from "./cache/prompt-cache.ts";
export { checkHeadIsFold } from "./check-head-is-fold.ts";
export { type StoreCase, type StoreCaseContext, type StoreCaseNeed, skipReason } from "./store-case.ts";
export { blobStoreCases, type BlobStoreCase } from "./blob-store-cases.ts";
export { storeCases } from "./store-cases.ts";
export {
  type ModelAbility,
  type ModelCase,
  type ModelCaseNeed,
  type ModelSubject,
  modelSkipReason,
} from "./model-case.ts";
export { modelCases } from "./model-cases.ts";
export {
  type SandboxAbility,
  type SandboxCase,
  type SandboxCaseContext,
  sandboxSkipReason,
} from "./sandbox/sandbox-case.ts";
export { sandboxCases } from "./sandbox-cases.ts";
