import type { WorkerInput } from "./fleet/worker-process.ts";
import type { AppInput } from "./http/app-process.ts";
import { takeTurns } from "./cache/take-turns.ts";
import { measurePeer } from "./measure-peer.ts";
import { openInChild } from "./open-in-child.ts";
import { measureHeap } from "./measure-heap.ts";
import type { SectionInput } from "./measure-section.ts";
import type { Row } from "./row.ts";
import { measureServerPeer } from "./servers/measure-server-peer.ts";

/** The tasks that can run in a separate process. */
export const tasks = {
  // Imported dynamically, so that other processes do not load the server.
  app: async (input: AppInput): Promise<never> => (await import("./http/serve-app.ts")).serveApp(input),
  heap: measureHeap,
  open: openInChild,
  peer: measurePeer,
  // Imported dynamically, as it imports all sections, which import this file.
  section: async (input: SectionInput): Promise<Row[]> => (await import("./measure-section.ts")).measureSection(input),
  serverPeer: measureServerPeer,
  turns: takeTurns,
  worker: async (input: WorkerInput): Promise<never> => (await import("./fleet/serve-worker.ts")).serveWorker(input),
};

export type TaskName = keyof typeof tasks;
export type TaskInput<Name extends TaskName> = Parameters<(typeof tasks)[Name]>[0];
export type TaskOutput<Name extends TaskName> = Awaited<ReturnType<(typeof tasks)[Name]>>;
