import { createHeader, SessionTree } from "skein";
import { messageOf } from "./message-of.ts";
import { type DurableKind, openStoreOf } from "./store-kind.ts";

/** What an opened session costs. */
export interface Heap {
  /** Everything JavaScript holds on to: heap, external memory and array buffers. */
  readonly heldBytes: number;
  /** All memory of the process, the database's own included. */
  readonly residentBytes: number;
}

/**
 * The memory of this process after a session was opened, its context built and 10 messages appended, all of them still
 * open. Without a session id it makes an empty session, which is what others are compared with.
 */
export async function measureHeap(input: {
  readonly kind: DurableKind;
  readonly folder: string;
  readonly sessionId: string | null;
}): Promise<Heap> {
  const store = await openStoreOf(input.kind, input.folder);
  const sessionId = input.sessionId ?? (await store.create(createHeader())).header.id;
  const tree = await SessionTree.on(store, sessionId);
  let context = await tree.buildContext();
  for (let index = 0; index < 10; index++) await tree.appendMessage(messageOf(index));
  context = await tree.buildContext();
  // The second collection takes what finalizers of the first one let go of.
  for (let times = 0; times < 2; times++) globalThis.gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  // Array buffers are part of `external`. The context is used here so that it is still held when memory is read.
  const heap = { heldBytes: context.messages.length === 0 ? Number.NaN : heapUsed + external, residentBytes: rss };
  await store.close();
  return heap;
}
