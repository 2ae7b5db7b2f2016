import { useCallback, useEffect, useRef, useState } from "react";
import { ClientError, type Problem, type RunView, type WireRunEvent } from "skein/client";
import type { Content } from "../../../src/session/message.ts";
import { useClient } from "../request/use-client.ts";
import type { SessionProps } from "../session/session-props.ts";
import type { RunChoice } from "./run-choice.ts";
import { hear, NOTHING_HEARD, type RunState } from "./run-state.ts";

/** How long events are gathered before they are drawn. */
const GATHER_MS = 40;
/** How often a run in another process is asked after, whose end nobody tells us of. */
const LOOK_MS = 3000;

/** The run of a session, whoever started it, and what can be done about it. */
export interface Run {
  /** The run that is followed; null when there is none here. */
  readonly id: string | null;
  readonly state: RunState;
  /** The agent that answers; null while that is not known, and in a group. */
  readonly agent: string | null;
  /** Why the last run did not come to its end. */
  readonly problem: Problem | null;
  readonly start: (input: Content, choice: RunChoice) => Promise<void>;
  /** Goes on with a run that was interrupted. */
  readonly recover: () => Promise<void>;
  /** Takes the problem away. */
  readonly dismiss: () => void;
  /** How many runs were started from here. */
  readonly starts: number;
}

/** Follows the run of a session, and starts one. */
export function useRun({ session, live }: SessionProps, onChange: () => void): Run {
  const client = useClient();
  const sessionId = session.header.id;
  const [own, setOwn] = useState<string | null>(null);
  const [over, setOver] = useState<ReadonlySet<string>>(new Set());
  const [state, setState] = useState<RunState>(NOTHING_HEARD);
  const [agent, setAgent] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [starts, setStarts] = useState(0);
  const lastRun = useRef<string | null>(null);
  const dismissed = useRef<string | null>(null);
  const latest = useRef({ reload: live.reload, onChange });
  latest.current = { reload: live.reload, onChange };
  const { running } = session;
  const id = [own, running?.here === true ? running.runId : null].find((each) => each !== null && !over.has(each));

  const ended = useCallback((runId: string, why: Problem | null) => {
    setOver((before) => new Set(before).add(runId));
    setProblem(why);
    latest.current.onChange();
    latest.current.reload();
    // The server lets go of the session a moment after the last event.
    setTimeout(() => latest.current.reload(), 500);
  }, []);

  useEffect(() => {
    if (id === undefined || id === null) return;
    setState(NOTHING_HEARD);
    setProblem(null);
    lastRun.current = id;
    client.runs.get(id).then(
      (run) => setAgent(run.agent),
      () => setAgent(null),
    );
    return followRun(client, id, {
      heard: setState,
      roundEnded: () => latest.current.onChange(),
      ended: (why) => ended(id, why),
    });
  }, [client, id, ended]);

  const elsewhere = running !== null && !running.here;
  useEffect(() => {
    if (!elsewhere) return;
    const timer = setInterval(() => latest.current.reload(), LOOK_MS);
    return () => clearInterval(timer);
  }, [elsewhere]);

  // A run that failed before this page was opened, or too soon to be followed, is worth knowing of too.
  const { revision } = live;
  const idle = id == null;
  useEffect(() => {
    if (!idle || revision < 0) return;
    const controller = new AbortController();
    const look = async (): Promise<void> => {
      const [last] = await client.runs.list(sessionId, { signal: controller.signal });
      if (last === undefined || dismissed.current === last.runId || controller.signal.aborted) return;
      if (last.status === "failed") setProblem(last.problem);
      else if (last.status === "finished") setProblem(null);
      lastRun.current = last.runId;
    };
    look().catch(() => {});
    return () => controller.abort();
  }, [client, sessionId, idle, revision]);

  const took = (run: RunView): void => {
    setOwn(run.runId);
    setAgent(run.agent);
    setStarts((count) => count + 1);
    latest.current.reload();
  };
  return {
    id: id ?? null,
    state: id == null && !state.ended ? NOTHING_HEARD : state,
    agent,
    problem,
    start: async (input, { agent, model, group }) => {
      const who =
        group === null ? { ...(agent === null ? {} : { agent }), ...(model === null ? {} : { model }) } : { group };
      took(await client.runs.start(sessionId, { input, ...who }));
    },
    recover: async () => {
      const run = await client.runs.recover(sessionId);
      if (run === null) latest.current.reload();
      else took(run);
    },
    dismiss: () => {
      dismissed.current = lastRun.current;
      setProblem(null);
    },
    starts,
  };
}

interface Follower {
  heard(change: (state: RunState) => RunState): void;
  roundEnded(): void;
  ended(problem: Problem | null): void;
}

function followRun(client: ReturnType<typeof useClient>, runId: string, follower: Follower): () => void {
  const controller = new AbortController();
  let gathered: WireRunEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | null = null;
  const tell = (): void => {
    timer = null;
    const events = gathered;
    gathered = [];
    const now = performance.now();
    follower.heard((state) => events.reduce((before, event) => hear(before, event, now), state));
    if (events.some(({ type }) => type === "round-finished" || type === "tool-finished")) follower.roundEnded();
  };
  const follow = async (): Promise<Problem | null> => {
    let last: WireRunEvent | null = null;
    for await (const event of client.runs.events(runId, { signal: controller.signal })) {
      gathered.push(event);
      timer ??= setTimeout(tell, GATHER_MS);
      last = event;
    }
    if (last?.type === "run-failed" || last?.type === "group-failed") return last.error;
    if (last?.type === "group-finished" && last.outcome.reason === "agent-failed") return last.outcome.error as Problem;
    return null;
  };
  const end = (problem: Problem | null): void => {
    if (controller.signal.aborted) return;
    if (timer !== null) clearTimeout(timer);
    tell();
    follower.ended(problem);
  };
  // A server that was started anew does not know the run; the log says what became of it.
  follow().then(end, (error: unknown) =>
    end(error instanceof ClientError && error.status !== 404 ? error.problem : null),
  );
  return () => {
    controller.abort();
    if (timer !== null) clearTimeout(timer);
  };
}
