export * from "./agent/index.ts";
export * from "./session/index.ts";
export { createStore } from "./stores/create-store.ts";
export { type OpenStoreOptions, openStore } from "./stores/open-store.ts";
export * from "./tree/index.ts";
