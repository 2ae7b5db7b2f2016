import type { Entry, EntryDraft } from "../src/session/log/entry.ts";
import { operation, Session } from "../src/session/value/session.ts";
import type { SessionStore } from "../src/session/store.ts";
import { type Row, Transcript } from "../src/session/value/transcript.ts";
import { openRunSink } from "../src/agent/persist/open-run-sink.ts";
import type { Persist, RunSink, SinkRequest } from "../src/agent/persist/run-sink.ts";

let runs = 0;

/** The request for a sink that a loop makes when it starts with a user session. */
function requestOf(user: Session, init: Partial<SinkRequest> = {}): SinkRequest {
  const output = Session.derive(user, user.transcript, {
    lineage: operation("op_session_loop", "runSessionLoop", [user.id]),
  });
  return { runId: `run-${++runs}`, output, user, systemPrompt: "be brief", ...init };
}

/** Opens a sink as a loop does when it starts. */
export async function openSink(
  persist: Persist,
  user: Session,
  init: Partial<SinkRequest> = {},
): Promise<{ request: SinkRequest; sink: RunSink; user: Session }> {
  const request = requestOf(user, init);
  return { request, ...(await openRunSink(persist, request)) };
}

/** A store that waits for `act` before each append that `matches`. */
export function actingBefore(
  store: SessionStore,
  matches: (draft: EntryDraft) => boolean,
  act: (sessionId: string, draft: EntryDraft) => Promise<unknown>,
): SessionStore {
  const append: SessionStore["append"] = async (sessionId, drafts, options) => {
    const draft = drafts.find(matches);
    if (draft !== undefined) await act(sessionId, draft);
    return store.append(sessionId, drafts, options);
  };
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

/** The user session of the next turn, after a persisted loop. */
export function nextTurn(output: Session, rows: readonly Row[], sink: RunSink): Session {
  const origin = sink.origin();
  if (origin === null) throw new Error("the sink has no origin");
  return Session.of(Transcript.withOrigin(output.transcript.appendAll(rows), origin), {
    id: output.id,
    lineage: output.lineage,
  });
}
