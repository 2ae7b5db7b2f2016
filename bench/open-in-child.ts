import { SessionTree } from "skein";
import { readIoCounters } from "./io-counters.ts";
import { type DurableKind, openStoreOf } from "./store-kind.ts";

/** Measures opening a session and building its context as the first action of a process. */
export async function openInChild(input: {
  readonly kind: DurableKind;
  readonly folder: string;
  readonly sessionId: string;
}): Promise<{ timeMs: number; readBytes: number }> {
  const before = readIoCounters();
  const startedAt = performance.now();
  await using store = await openStoreOf(input.kind, input.folder);
  const tree = await SessionTree.on(store, input.sessionId);
  await tree.buildContext();
  return { timeMs: performance.now() - startedAt, readBytes: readIoCounters().readBytes - before.readBytes };
}
