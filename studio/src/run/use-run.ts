import { useEffect, useRef, useState } from "react";
import type { RunView } from "skein/client";
import type { Content } from "../../../src/session/message.ts";
import { useConnection } from "../request/client.ts";
import { useClient } from "../request/use-client.ts";
import type { SessionProps } from "../session/session-props.ts";
import { followRun } from "./follow-run.ts";
import type { RunChoice } from "./run-choice.ts";
import { NO_EVENTS, type RunProblem, type RunState } from "./run-state.ts";
import { useLastProblem } from "./use-last-problem.ts";
import { useRunId } from "./use-run-id.ts";

/** How often the run of another process is checked: no event tells that its process has died. */
const LOOK_MS = 3000;
/** The server releases a session a moment after the last event of its run. */
const LET_GO_MS = 500;

/** The run of a session, started by any client, with its actions. */
export interface Run {
  /** The followed run; null without one. */
  readonly id: string | null;
  readonly state: RunState;
  /** The agent that answers; null while unknown, and in a group. */
  readonly agent: string | null;
  /** Why the last run failed. */
  readonly problem: RunProblem | null;
  readonly start: (input: Content, choice: RunChoice) => Promise<void>;
  /** Continues a run that was interrupted, or that waits to continue. */
  readonly recover: () => Promise<void>;
  /** Cancels an open run. */
  readonly cancel: (runId: string) => Promise<void>;
  /** Clears the problem. */
  readonly dismiss: () => void;
  /** How many runs were started from here. */
  readonly starts: number;
}

/** Follows the run of a session, and starts one; `onChange` is called after new entries in the log. */
export function useRun({ session, live }: SessionProps, onChange: () => void): Run {
  const client = useClient();
  const sessionId = session.header.id;
  const { id, begin, end } = useRunId(session);
  const { problem, set: setProblem, dismiss } = useLastProblem(sessionId, id === null, live.revision);
  const [state, setState] = useState<RunState>(NO_EVENTS);
  const [agent, setAgent] = useState<string | null>(null);
  const [starts, setStarts] = useState(0);
  const { returns } = useConnection();
  const latest = useRef({ reload: live.reload, onChange });
  latest.current = { reload: live.reload, onChange };

  // Runs again when the server is reachable again, which then may not know the run.
  useEffect(() => {
    if (id === null) return;
    setState(NO_EVENTS);
    setProblem(id, null);
    client.runs.get(sessionId, id).then(
      (run) => setAgent(run.agent),
      () => setAgent(null),
    );
    return followRun(client, sessionId, id, {
      update: setState,
      logged: () => latest.current.onChange(),
      ended: (why) => {
        end(id);
        setProblem(id, why);
        latest.current.onChange();
        latest.current.reload();
        setTimeout(() => latest.current.reload(), LET_GO_MS);
      },
    });
  }, [client, sessionId, id, end, setProblem, returns]);

  const unfollowed = session.running !== null && id === null;
  useEffect(() => {
    if (!unfollowed) return;
    const timer = setInterval(() => latest.current.reload(), LOOK_MS);
    return () => clearInterval(timer);
  }, [unfollowed]);

  const took = (run: RunView): void => {
    begin(run.runId);
    setAgent(run.agent);
    setStarts((count) => count + 1);
    latest.current.reload();
  };
  const start = async (input: Content, { agent: name, model, group }: RunChoice): Promise<void> => {
    const who = { ...(name === null ? {} : { agent: name }), ...(model === null ? {} : { model }) };
    took(await client.runs.start(sessionId, { input, ...(group === null ? who : { group }) }));
  };
  const recover = async (): Promise<void> => {
    const run = await client.runs.recover(sessionId);
    if (run === null) latest.current.reload();
    else took(run);
  };
  const cancel = async (runId: string): Promise<void> => {
    await client.runs.cancel(sessionId, runId, { reason: "Stopped in the studio." });
    latest.current.reload();
  };
  return {
    id,
    state: id === null && !state.ended ? NO_EVENTS : state,
    agent,
    problem,
    start,
    recover,
    cancel,
    dismiss,
    starts,
  };
}
