import type { Session } from "../../session/session.ts";
import type { SessionTree } from "../../tree/session-tree.ts";
import type { SinkRequest } from "../run-sink.ts";
import { LeaseHold } from "./lease-hold.ts";
import type { LogSink } from "./log-sink.ts";
import { continueLog, type RunLog } from "./run-log.ts";

/** Keeps a run in a session that goes on, which has its file from then on. */
export async function openTreeSink(tree: SessionTree, request: SinkRequest): Promise<{ sink: LogSink; user: Session }> {
  // Rows of a run are durable one by one, so a session that still waits for its file gets it now.
  await tree.flush();
  const { store } = tree;
  const log: RunLog = {
    store,
    append: (drafts, options) => tree.appendAll(drafts, options),
    hold: () => LeaseHold.take(store, tree.id, request.runId, request),
    head: () => tree.refresh(),
    shared: true,
    room: () => tree.room,
  };
  return continueLog(log, tree.id, request);
}
