import type { WorkerInput } from "./fleet/worker-process.ts";
import type { AppInput } from "./http/app-process.ts";
import { measurePeer } from "./measure-peer.ts";
import { openInChild } from "./open-in-child.ts";
import { measureHeap } from "./measure-heap.ts";
import type { SectionInput } from "./measure-section.ts";
import type { Row } from "./row.ts";
import { measureServerPeer } from "./servers/measure-server-peer.ts";

/** What can be run in a process of its own. */
export const tasks = {
  // What a server needs is not for the others to hold.
  app: async (input: AppInput): Promise<never> => (await import("./http/serve-app.ts")).serveApp(input),
  heap: measureHeap,
  open: openInChild,
  peer: measurePeer,
  // It leads to all sections, and they to this file.
  section: async (input: SectionInput): Promise<Row[]> => (await import("./measure-section.ts")).measureSection(input),
  serverPeer: measureServerPeer,
  worker: async (input: WorkerInput): Promise<never> => (await import("./fleet/serve-worker.ts")).serveWorker(input),
};

export type TaskName = keyof typeof tasks;
export type TaskInput<Name extends TaskName> = Parameters<(typeof tasks)[Name]>[0];
export type TaskOutput<Name extends TaskName> = Awaited<ReturnType<(typeof tasks)[Name]>>;
