import { createHeader, SessionTree } from "skein";
import { messageOf } from "./message-of.ts";
import { type AppMemory, readMemory } from "./read-memory.ts";
import { type DurableKind, openStoreOf } from "./store-kind.ts";

/**
 * The memory of this process after a session was opened, its context was built and 10 messages were appended, with all
 * of it still referenced. Without a session id it makes an empty session, as the baseline.
 */
export async function measureHeap(input: {
  readonly kind: DurableKind;
  readonly folder: string;
  readonly sessionId: string | null;
}): Promise<AppMemory> {
  const store = await openStoreOf(input.kind, input.folder);
  const sessionId = input.sessionId ?? (await store.create(createHeader())).header.id;
  const tree = await SessionTree.on(store, sessionId);
  let context = await tree.buildContext();
  for (let index = 0; index < 10; index++) await tree.appendMessage(messageOf(index));
  context = await tree.buildContext();
  const memory = readMemory();
  // Uses the context, so that it is still referenced when memory is read.
  if (context.messages.length === 0) throw new Error("The context that was measured is empty.");
  await store.close();
  return memory;
}
