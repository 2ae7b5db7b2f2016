import type { SessionTree } from "../../tree/session-tree.ts";
import type { OpenedSink, SinkRequest } from "./run-sink.ts";
import { continueLog, storeLog } from "./run-log.ts";

/** Keeps a run in a session that goes on, which has its file from then on. */
export async function openTreeSink(tree: SessionTree, request: SinkRequest): Promise<OpenedSink> {
  // Rows of a run are durable one by one, so a session that still waits for its file gets it now.
  await tree.flush();
  const log = {
    ...storeLog(tree.store, tree.id, request),
    append: tree.appendAll.bind(tree),
    head: () => tree.refresh(),
    room: () => tree.room,
  };
  return continueLog(log, request);
}
