import "./sandboxes/register-built-in.ts";
import "./tools/register-built-in.ts";

export * from "./agent/index.ts";
export * from "./export/index.ts";
export * from "./group/index.ts";
export * from "./lifecycle/index.ts";
export {
  createModel,
  type ModelProviderFactory,
  type ModelProviderOptions,
  registerModelProvider,
} from "./models/model-providers.ts";
export { contextWindowOf, registerContextWindows } from "./models/context-windows.ts";
export { costOf, type ModelPrice, priceOf, registerPrices } from "./models/prices.ts";
export * from "./session/index.ts";
export {
  type CheckProgress,
  type CheckStoreOptions,
  checkStore,
  type StoreReport,
} from "./stores/doctor/check-store.ts";
export {
  type CopiedSession,
  type CopyProgress,
  type CopySessionOptions,
  copySession,
} from "./stores/copy/copy-session.ts";
export {
  type CopyFailure,
  type CopyStoreOptions,
  copyStore,
  type StoreCopy,
  type StoreCopyProgress,
} from "./stores/copy/copy-store.ts";
export { createStore } from "./stores/complete/create-store.ts";
export { type DigestOptions, digestOf, type LogDigest } from "./stores/doctor/log-digest.ts";
export { type OpenStoreOptions, openStore } from "./stores/open-store.ts";
export type { FindingKind, StoreFinding } from "./stores/doctor/store-finding.ts";
export * from "./tools/index.ts";
export * from "./tree/index.ts";
