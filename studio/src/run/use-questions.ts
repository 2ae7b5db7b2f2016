import type { RunView } from "skein/client";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import type { SessionProps } from "../session/session-props.ts";
import type { RunQuestion } from "./run-question.ts";
import type { Run } from "./use-run.ts";

/**
 * The questions of a session's open run: from its log, so that an answer from anywhere removes them, and from its events
 * until the log is loaded. Questions of runs inside tools are not included.
 */
export function useQuestions({ session, live }: SessionProps, { id, state: { tools } }: Run): readonly RunQuestion[] {
  const client = useClient();
  const sessionId = session.header.id;
  const parked = session.openRuns.find(({ state }) => state === "parked")?.runId ?? null;
  const fromEvents = Object.values(tools).flatMap((tool) => (tool.state === "waiting" ? [tool.approval] : []));
  const runId = parked ?? (fromEvents.length > 0 ? id : null);
  const view = useRevised<RunView | null>(runId ?? "", live.revision, async (signal) =>
    runId === null ? null : client.runs.get(sessionId, runId, { signal }),
  );
  if (runId === null) return NOTHING;
  return view.data?.questions ?? fromEvents;
}

const NOTHING: readonly RunQuestion[] = [];
