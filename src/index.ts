import "./sandboxes/register-built-in.ts";
import "./tools/register-built-in.ts";

export * from "./agent/index.ts";
export * from "./group/index.ts";
export * from "./lifecycle/index.ts";
export {
  createModel,
  type ModelProviderFactory,
  type ModelProviderOptions,
  registerModelProvider,
} from "./models/model-providers.ts";
export { costOf, type ModelPrice, priceOf, registerPrices } from "./models/prices.ts";
export * from "./session/index.ts";
export { createStore } from "./stores/create-store.ts";
export { type OpenStoreOptions, openStore } from "./stores/open-store.ts";
export * from "./tools/index.ts";
export * from "./tree/index.ts";
