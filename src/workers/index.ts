export { type BullMqQueueInit, bullmqQueue } from "./bullmq-queue.ts";
export { inProcessQueue } from "./in-process-queue.ts";
export type {
  QueueCounts,
  Listening,
  ListenOptions,
  NotificationHandler,
  QueueListening,
  NotifyOptions,
  RunQueue,
} from "./run-queue.ts";
export { type RunWorker, startWorker, type WorkerCloseOptions } from "./start-worker.ts";
export type { RunPlace } from "./user-places.ts";
export type { ParkedRun, RunWebhook, WorkerInit } from "./worker-options.ts";
export type { WorkerRun, WorkerView } from "./worker-view.ts";
