export { type BullMqBellInit, bullmqBell } from "./bullmq-bell.ts";
export { inProcessBell } from "./in-process-bell.ts";
export type {
  BellCounts,
  Listening,
  ListenOptions,
  RingHandler,
  RingOptions,
  RunBell,
} from "./run-bell.ts";
export { type RunWorker, startWorker, type WorkerCloseOptions } from "./start-worker.ts";
export type { RunPlace } from "./user-places.ts";
export type { ParkedRun, RunWebhook, WorkerInit } from "./worker-options.ts";
export type { WorkerRun, WorkerView } from "./worker-view.ts";
