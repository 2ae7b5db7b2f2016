import { createModel, type Model, SessionError, type SessionHead, type SessionStore } from "../../index.ts";
import { answeredBy } from "../../tree/answered-by.ts";

/** The model of sessions that nothing has answered yet, where none is named. */
export const OFFLINE_MODEL = "offline/offline";

/**
 * The name of the model that goes on with a session where none is named: the one that answered in it, the offline one where
 * nothing has; null where something has that the log does not name.
 */
export async function modelNameOf(store: SessionStore, head: SessionHead): Promise<string | null> {
  const { byAnother, model } = await answeredBy(store, head);
  return model ?? (byAnother ? null : OFFLINE_MODEL);
}

/** Makes that model. @throws {SessionError} for one that cannot be had here, such as `KEY_MISSING`: no other takes its place. */
export function makeModelOf(
  { header: { id } }: SessionHead,
  name: string | null,
  make: (name: string) => Model = createModel,
): Model {
  if (name === null) {
    const text = `Session ${id} was answered by a model that its log does not name; name the one to ask with --model.`;
    throw new SessionError("MODEL_NOT_FOUND", text);
  }
  try {
    return make(name);
  } catch (cause) {
    if (!(cause instanceof SessionError)) throw cause;
    const text = `${cause.message} Session ${id} was answered by ${name}; --model names another.`;
    throw new SessionError(cause.code, text, { cause });
  }
}

/** The model that a command asks about a session: the one that is named, else the session's own. */
export async function modelFor(store: SessionStore, head: SessionHead, named: string | undefined): Promise<Model> {
  return named === undefined ? makeModelOf(head, await modelNameOf(store, head)) : createModel(named);
}
