import { aggregateCases } from "./store/aggregate-cases.ts";
import { appendCases } from "./store/append-cases.ts";
import { blobCases } from "./store/blob-cases.ts";
import { checkpointCases } from "./store/checkpoint-cases.ts";
import { closingCases } from "./store/closing-cases.ts";
import { concurrencyCases } from "./store/concurrency-cases.ts";
import { conditionCases, retryCases } from "./store/condition-cases.ts";
import { createCases } from "./store/create-cases.ts";
import { deleteCases } from "./store/delete-cases.ts";
import { forkCases } from "./store/fork-cases.ts";
import { headCases } from "./store/head-cases.ts";
import { idCases } from "./store/id-cases.ts";
import { leaseCases } from "./store/lease-cases.ts";
import { ledgerCases } from "./store/ledger-cases.ts";
import { expiryCases, listCases } from "./store/list-cases.ts";
import { readCases } from "./store/read-cases.ts";
import { runCases } from "./store/run-cases.ts";
import { searchCases } from "./store/search-cases.ts";
import { valueCases } from "./store/value-cases.ts";
import { watchCases } from "./store/watch-cases.ts";
import type { StoreCase } from "./store-case.ts";

/** The conformance cases of `SessionStore`, for any test runner. Each needs its own empty store. */
export const storeCases: readonly StoreCase[] = [
  ...createCases,
  ...appendCases,
  ...conditionCases,
  ...retryCases,
  ...valueCases,
  ...blobCases,
  ...idCases,
  ...concurrencyCases,
  ...readCases,
  ...headCases,
  ...forkCases,
  ...listCases,
  ...expiryCases,
  ...runCases,
  ...searchCases,
  ...deleteCases,
  ...checkpointCases,
  ...leaseCases,
  ...ledgerCases,
  ...watchCases,
  ...aggregateCases,
  ...closingCases,
];
