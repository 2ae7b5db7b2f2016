import type { RunView } from "skein/client";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import type { SessionProps } from "../session/session-props.ts";
import type { Asked } from "./asked.ts";
import type { Run } from "./use-run.ts";

/**
 * What the open run of a session asks: as its log says, so that an answer from anywhere takes the question away, and until
 * that is read as its events say. What runs inside of tools ask is no part of it.
 */
export function useQuestions({ session, live }: SessionProps, { id, state: { tools } }: Run): readonly Asked[] {
  const client = useClient();
  const sessionId = session.header.id;
  const parked = session.openRuns.find(({ state }) => state === "parked")?.runId ?? null;
  const heard = Object.values(tools).flatMap((tool) => (tool.state === "waiting" ? [tool.approval] : []));
  const runId = parked ?? (heard.length > 0 ? id : null);
  const view = useRevised<RunView | null>(runId ?? "", live.revision, async (signal) =>
    runId === null ? null : client.runs.get(sessionId, runId, { signal }),
  );
  if (runId === null) return NOTHING;
  return view.data?.questions ?? heard;
}

const NOTHING: readonly Asked[] = [];
