export { checkHeadIsFold } from "./check-head-is-fold.ts";
export { type StoreCase, type StoreCaseContext, type StoreCaseNeed, skipReason } from "./store-case.ts";
export { storeCases } from "./store-cases.ts";
