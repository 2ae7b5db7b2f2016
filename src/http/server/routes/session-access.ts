import type { Model } from "../../../agent/model/model.ts";
import { CheckpointNotFoundError, SessionError, SessionNotFoundError, show } from "../../../session/errors.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { Checkpoint } from "../../../session/store.ts";
import type { SessionTree } from "../../../tree/session-tree.ts";
import type { ListedSession, SessionView } from "../../wire.ts";
import { answeredBy } from "../../../tree/answered-by.ts";
import { HttpError } from "../http-error.ts";
import type { Caller, ServerServices } from "../server-services.ts";

/** A session that the caller may see. @throws {SessionNotFoundError} for a missing one and for another's alike. */
export async function visibleHead({ manager }: ServerServices, id: string, caller: Caller): Promise<SessionHead> {
  const head = await manager.head(id, { actor: caller, gather: true });
  if (head === null) throw new SessionNotFoundError(id);
  return head;
}

/** The ids that front ends make: 16 letters and digits, as the AI SDK does, or a UUID. Nobody can guess one. */
const MADE_ID = /^(?:[0-9A-Za-z]{16}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** Whether a session could begin under an id that a front end chose: no other could, as its refusal would tell of a session. */
export async function mayBegin({ manager }: ServerServices, id: string): Promise<boolean> {
  return MADE_ID.test(id) && (await manager.head(id)) === null;
}

/** A session that the caller may see; one that could begin under the id is made, and is the caller's. */
export async function visibleOrNewHead(services: ServerServices, id: string, caller: Caller): Promise<SessionHead> {
  if (await mayBegin(services, id)) {
    await services.storage.addSession(caller.userId);
    await services.manager.create({ id, userId: caller.userId }).catch((error: unknown) => {
      // Another request was faster.
      if (!(error instanceof SessionError && error.code === "SESSION_EXISTS")) throw error;
    });
  }
  return visibleHead(services, id, caller);
}

/** A session for whoever writes to it; one that is not active is refused, and stays as it is. */
export async function openTree({ manager }: ServerServices, id: string, caller: Caller): Promise<SessionTree> {
  return manager.open(id, { actor: caller, resume: false });
}

/** A session as it is answered. */
async function viewOf(services: ServerServices, head: SessionHead): Promise<SessionView> {
  const { path, ...listed } = await listedView(services, head);
  return { ...listed, path: { ...path, settings: await services.store.settings(head.header.id, head.path) } };
}

/** Sessions as they are listed: without what is set in them, which may be large and is read one session at a time. */
export async function listedViews(
  services: ServerServices,
  heads: readonly SessionHead[],
): Promise<readonly ListedSession[]> {
  return Promise.all(heads.map((head) => listedView(services, head)));
}

async function listedView({ store }: ServerServices, head: SessionHead): Promise<ListedSession> {
  // A run puts its start on record, so that most sessions need not be asked for.
  const lease = head.openRuns.length === 0 ? null : await store.leaseOf(head.header.id);
  const { settings: _settings, ...path } = head.path;
  return { ...head, path, running: lease && { runId: lease.runId } };
}

/** A session as it is answered, read anew. */
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
 * The model to ask: the one that is named, else the session's own, else the first that the server offers; the offline one
 * only where nothing else has answered. @throws {HttpError} `MODEL_NOT_FOUND` where there is none.
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
  const why = byAnother ? " but the offline one, which does not go on where another model has answered; name it" : "";
  throw new HttpError("MODEL_NOT_FOUND", `The server offers no model${why}.`);
}
