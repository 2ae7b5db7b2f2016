import type { Model } from "../../../agent/model/model.ts";
import { CheckpointNotFoundError, SessionError, SessionNotFoundError, show } from "../../../session/errors.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { Checkpoint } from "../../../session/store.ts";
import type { SessionTree } from "../../../tree/session-tree.ts";
import type { ListedSession, SessionView } from "../../wire.ts";
import { answeredBy } from "../../../tree/answered-by.ts";
import { HttpError } from "../http-error.ts";
import type { Caller, ServerServices } from "../server-services.ts";

/**
 * The head of a session that the caller may see. @throws {SessionNotFoundError} for a missing session and for another user's
 * alike.
 */
export async function visibleHead({ manager }: ServerServices, id: string, caller: Caller): Promise<SessionHead> {
  const head = await manager.head(id, { actor: caller, gather: true });
  if (head === null) throw new SessionNotFoundError(id);
  return head;
}

/** Ids as front ends generate them: 16 letters and digits, as the AI SDK does, or a UUID. Such ids cannot be guessed. */
const MADE_ID = /^(?:[0-9A-Za-z]{16}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/**
 * Whether a new session may get an id chosen by a front end. Ids that can be guessed are refused: the answer would reveal whether
 * another user has such a session.
 */
export async function mayCreate({ manager }: ServerServices, id: string): Promise<boolean> {
  return MADE_ID.test(id) && (await manager.head(id)) === null;
}

/**
 * The head of a session that the caller may see. If the id may be used for a new session, the session is created for the caller.
 */
export async function visibleOrNewHead(services: ServerServices, id: string, caller: Caller): Promise<SessionHead> {
  if (await mayCreate(services, id)) {
    await services.storage.addSession(caller.userId);
    await services.manager.create({ id, userId: caller.userId }).catch((error: unknown) => {
      // A concurrent request has created it.
      if (!(error instanceof SessionError && error.code === "SESSION_EXISTS")) throw error;
    });
  }
  return visibleHead(services, id, caller);
}

/** Opens a session for writing. A session that is not active is refused, and not resumed. */
export async function openTree({ manager }: ServerServices, id: string, caller: Caller): Promise<SessionTree> {
  return manager.open(id, { actor: caller, resume: false });
}

/** The view of a session. */
async function viewOf(services: ServerServices, head: SessionHead): Promise<SessionView> {
  const { path, ...listed } = await listedView(services, head);
  return { ...listed, path: { ...path, settings: await services.store.settings(head.header.id, head.path) } };
}

/** The views of sessions in a listing: without their settings, which may be large and are read for one session at a time. */
export async function listedViews(
  services: ServerServices,
  heads: readonly SessionHead[],
): Promise<readonly ListedSession[]> {
  return Promise.all(heads.map((head) => listedView(services, head)));
}

async function listedView({ store }: ServerServices, head: SessionHead): Promise<ListedSession> {
  // A session without open runs has no lease, so most sessions need no lookup.
  const lease = head.openRuns.length === 0 ? null : await store.leaseOf(head.header.id);
  const { settings: _settings, ...path } = head.path;
  return { ...head, path, running: lease && { runId: lease.runId } };
}

/** Reads the view of a session. */
export async function readView(services: ServerServices, id: string, caller: Caller): Promise<SessionView> {
  return viewOf(services, await visibleHead(services, id, caller));
}

/** A checkpoint of a session that the caller may see. */
export async function visibleCheckpoint(services: ServerServices, id: string, caller: Caller): Promise<Checkpoint> {
  const checkpoint = await services.store.loadCheckpoint(id);
  const head = checkpoint && (await services.manager.head(checkpoint.sessionId, { actor: caller }));
  if (checkpoint === null || head === null) throw new CheckpointNotFoundError(id);
  return checkpoint;
}

/**
 * Selects the model for a request: the named one, else the session's own, else the first that the server offers; the offline
 * model only if no other model has answered in the session. @throws {HttpError} `MODEL_NOT_FOUND` if there is none.
 */
export async function modelFor(
  { models, modelInfos, store }: ServerServices,
  named: string | undefined,
  head: SessionHead,
): Promise<Model> {
  if (named !== undefined) {
    const model = models(named);
    if (model !== null) return model;
    throw new HttpError("MODEL_NOT_FOUND", `The server offers no model ${show(named)}.`);
  }
  const { byAnother, model: own } = await answeredBy(store, head);
  const first = modelInfos.find(({ id }) => !byAnother || !id.startsWith("offline/"));
  const model = (own === null ? null : models(own)) ?? models(first?.id ?? "");
  if (model !== null) return model;
  const why = byAnother
    ? " but the offline one, which is not used after answers of another model unless it is named"
    : "";
  throw new HttpError("MODEL_NOT_FOUND", `The server offers no model${why}.`);
}
