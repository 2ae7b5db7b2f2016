import type { Entry, EntryDraft } from "../src/session/log/entry.ts";
import { operation, Session } from "../src/session/value/session.ts";
import type { SessionStore } from "../src/session/store.ts";
import { type Row, Transcript } from "../src/session/value/transcript.ts";
import { openRunLog } from "../src/agent/persist/open-run-log.ts";
import type { LogRequest, Persist } from "../src/agent/persist/persist-option.ts";
import { type RunBeginning, RunLog } from "../src/agent/persist/run-log.ts";
import { EventLog } from "../src/agent/event-log.ts";
import type { RunEvent } from "../src/agent/run-event.ts";

let runs = 0;

/** The log of a run, to which tests append entries as they like. */
export type TestLog = RunLog & { append(drafts: readonly EntryDraft[]): Promise<void> };

/** A run that has begun in its log, and the events that the log recorded. */
export interface OpenedLog {
  readonly request: { readonly runId: string; readonly output: Session; readonly user: Session };
  readonly log: TestLog;
  readonly user: Session;
  readonly events: readonly RunEvent[];
}

/** Opens the log of a run as a loop does when it starts on a user session, and begins the run in it. */
export async function openLog(persist: Persist, user: Session, init: Partial<LogRequest> = {}): Promise<OpenedLog> {
  const lineage = operation("op_session_loop", "runSessionLoop", [user.id]);
  const output = init.output ?? Session.derive(user, user.transcript, { lineage });
  const { runId = `run-${++runs}`, sandboxHandleId } = init;
  const recorded: RunEvent[] = [];
  const events = new EventLog<RunEvent>({
    runId,
    listener: (event) => recorded.push(event),
    report: (error) => {
      throw error;
    },
    position: () => log.position,
  });
  const { signal } = new AbortController();
  const log = new RunLog({ runId, output, events, signal, kept: true, sandboxHandleId });
  let begun = user;
  const begin = (beginning: RunBeginning): Promise<void> =>
    log.begin(beginning, (session) => {
      begun = session;
    });
  await openRunLog(persist, { systemPrompt: "be brief", ...init, runId, output, user, begin });
  const append = (drafts: readonly EntryDraft[]): Promise<void> => log.note(drafts);
  return { request: { runId, output, user }, log: Object.assign(log, { append }), user: begun, events: recorded };
}

/** A store that waits for `act` before each append that `matches`. */
export function actingBefore(
  store: SessionStore,
  matches: (draft: EntryDraft) => boolean,
  act: (sessionId: string, draft: EntryDraft) => Promise<unknown>,
): SessionStore {
  return withAppend(store, async (sessionId, drafts, options) => {
    const draft = drafts.find(matches);
    if (draft !== undefined) await act(sessionId, draft);
    return store.append(sessionId, drafts, options);
  });
}

/** A store that waits for `act` after each append that `matches`, before the caller gets its result. */
export function actingAfter(
  store: SessionStore,
  matches: (draft: EntryDraft) => boolean,
  act: (sessionId: string) => Promise<unknown>,
): SessionStore {
  return withAppend(store, async (sessionId, drafts, options) => {
    const appended = await store.append(sessionId, drafts, options);
    if (drafts.some(matches)) await act(sessionId);
    return appended;
  });
}

function withAppend(store: SessionStore, append: SessionStore["append"]): SessionStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name, target);
      if (name === "append") return append;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

export async function entriesOf(store: SessionStore, sessionId: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(sessionId)) entries.push(entry);
  return entries;
}

/** The types of entries; of a run, its phase. */
export function typesOf(entries: readonly Entry[]): string[] {
  return entries.map((entry) => (entry.type === "run" ? entry.phase : entry.type));
}

export function idsOf({ transcript }: Session): string[] {
  return transcript.rows.map(({ id }) => id);
}

export function sessionOf(...rows: Row[]): Session {
  return Session.of(Transcript.of(rows));
}

/** The user session of the next turn, as a loop that was kept leaves it. */
export function nextTurn(output: Session, rows: readonly Row[], log: RunLog): Session {
  const origin = log.origin();
  if (origin === null) throw new Error("the log has no origin");
  return Session.of(Transcript.withOrigin(output.transcript.appendAll(rows), origin), {
    id: output.id,
    lineage: output.lineage,
  });
}
