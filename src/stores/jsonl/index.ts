export { type JsonlStore, type JsonlStoreOptions, openJsonlStore } from "./jsonl-store.ts";
export { finalPathOf, partialPathOf, sessionFileName } from "./file-names.ts";
export { type RepairReport, repairFile } from "./repair.ts";
export type { Damage } from "./salvage.ts";
