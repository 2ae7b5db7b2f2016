import type { JsonObject } from "../../../internal/json.ts";
import type { EntryOf } from "../../../session/entry.ts";
import { SessionError, SessionNotFoundError } from "../../../session/errors.ts";
import { isOwn, type SessionHead } from "../../../session/fold.ts";
import { inputIdOf, moveIdOf, type OpenRun, requestIdOf } from "../../../session/open-runs.ts";
import type { SessionStore } from "../../../session/store.ts";
import { walkUp } from "../../../tree/path-reader.ts";
import type { ChatView } from "../../chat-wire.ts";
import { answerMessageIdOf, answerMessageIdOfRun, messageIdOf } from "../../ui/message-id.ts";
import { toUIMessages, type UITurn } from "../../ui/to-ui-messages.ts";
import { ANSWER_CHARACTERS_MAX } from "../answer-bytes.ts";
import { readRun } from "../runs/run-views.ts";
import type { Caller, ServerServices } from "../server-services.ts";
import { visibleHead } from "../session-access.ts";

/** The ids that front ends make: 16 letters and digits, as the AI SDK does, or a UUID. Nobody can guess one. */
const MADE_ID = /^(?:[0-9A-Za-z]{16}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
/** How long the end of a run is told to those who join: it may have come after they read what was said. */
const ENDED_MS = 60_000;
const ENDED_ENTRIES_MAX = 50;

/**
 * The session of a chat. One that is not there yet is made under the id that the front end chose, if that is one which
 * nobody guesses: the refusal of another would tell of a session that the caller may not know of.
 */
export async function chatHead(services: ServerServices, id: string, caller: Caller): Promise<SessionHead> {
  const { manager } = services;
  if (await isNew(services, id)) {
    try {
      await manager.create({ id, userId: caller.userId });
    } catch (error) {
      // Another request of the same chat was faster.
      if (!(error instanceof SessionError && error.code === "SESSION_EXISTS")) throw error;
    }
  }
  return visibleHead(services, id, caller);
}

async function isNew({ manager }: ServerServices, id: string): Promise<boolean> {
  return MADE_ID.test(id) && (await manager.head(id)) === null;
}

/** What a person said on the active path, by the id that a front end knows it under; null where it is not there. */
export async function findSaid(
  store: SessionStore,
  { header, leafId }: SessionHead,
  messageId: string,
): Promise<EntryOf<"message"> | null> {
  if (leafId === null) return null;
  for await (const entry of walkUp(store, header.id, leafId)) {
    const isUsers = entry.type === "message" && entry.message.role === "user";
    if (isUsers && messageIdOf(entry.id) === messageId) return entry;
  }
  return null;
}

/** The id of the message that a run answers with. */
export async function answerIdOfRun(store: SessionStore, sessionId: string, runId: string): Promise<string> {
  const request = await store.getEntry(sessionId, requestIdOf(runId));
  const silent = request?.type === "run_request" && Array.isArray(request.input) && request.input.length === 0;
  const move = silent ? await store.getEntry(sessionId, moveIdOf(runId)) : null;
  return move?.type === "leaf" && move.targetId !== null
    ? answerMessageIdOf(move.targetId)
    : answerMessageIdOfRun(runId);
}

/** The run that whoever joins a chat is told of: the one that is open, or that ended just now. */
export async function runToJoin(store: SessionStore, head: SessionHead): Promise<string | null> {
  const open = openRunOf(head);
  if (open !== undefined) return open.runId;
  for await (const entry of store.read(head.header.id, { reverse: true, limit: ENDED_ENTRIES_MAX })) {
    if (entry.type !== "run" || !isOwn(head.header, entry, entry.seq)) continue;
    return Date.now() - Date.parse(entry.timestamp) < ENDED_MS ? entry.runId : null;
  }
  return null;
}

/** The run of a session that has begun, else the first that waits to. */
export function openRunOf({ openRuns }: SessionHead): OpenRun | undefined {
  return openRuns.find(({ state }) => state !== "requested") ?? openRuns[0];
}

/** What a session has come to. */
export interface SoFar {
  readonly head: SessionHead;
  /** What was said, and what waits to be answered. */
  readonly turns: readonly UITurn[];
  readonly variables: JsonObject;
  /** How many entries of the log that is. */
  readonly version: number;
}

/** What a chat has come to, what waits to be answered included; null where it could begin here. */
export async function readSoFar(services: ServerServices, id: string, caller: Caller): Promise<SoFar | null> {
  const { manager, store } = services;
  if (await isNew(services, id)) return null;
  const head = await visibleHead(services, id, caller);
  const state = await manager.getState(id, { actor: caller, charactersMax: ANSWER_CHARACTERS_MAX });
  if (state === null) throw new SessionNotFoundError(id);
  const run = openRunOf(head);
  const request = run?.state === "requested" ? await store.getEntry(id, requestIdOf(run.runId)) : null;
  const asked: UITurn[] =
    request?.type === "run_request" && request.input.length > 0
      ? [{ turnId: inputIdOf(request.runId), role: "user", content: request.input }]
      : [];
  const { turns, variables, version } = state;
  const isSaid = turns.some(({ turnId }) => turnId === asked[0]?.turnId);
  return { head, turns: isSaid ? turns : [...turns, ...asked], variables, version };
}

/** What a chat has come to, as messages; none where it could begin here. */
export async function readChat(services: ServerServices, id: string, caller: Caller): Promise<ChatView> {
  const soFar = await readSoFar(services, id, caller);
  if (soFar === null) return { id, messages: [] };
  const { head, turns } = soFar;
  const run = openRunOf(head);
  const questions = run === undefined ? [] : (await readRun(services, head, run.runId)).questions;
  return { id, messages: toUIMessages(turns, { questions }) };
}
