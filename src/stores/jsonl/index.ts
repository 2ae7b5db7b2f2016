export { type JsonlStore, type JsonlStoreOptions, openJsonlStore } from "./jsonl-store.ts";
export { finalPathOf, partialPathOf, sessionFileName } from "./places.ts";
export { type RepairReport, repairFile } from "./repair.ts";
export type { Damage } from "./salvage.ts";
