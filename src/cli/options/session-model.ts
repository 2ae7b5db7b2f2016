import { createModel, type Model, SessionError, type SessionHead, type SessionStore } from "../../index.ts";
import { answeredBy } from "../../tree/answered-by.ts";

/** The model of a session without answers, if none is named. */
export const OFFLINE_MODEL = "offline/offline";

/**
 * The name of the session's model: the one that last answered, or the offline model if none has; null if the log does
 * not name the model that answered.
 */
export async function modelNameOf(store: SessionStore, head: SessionHead): Promise<string | null> {
  const { byAnother, model } = await answeredBy(store, head);
  return model ?? (byAnother ? null : OFFLINE_MODEL);
}

/**
 * Creates the session's model and loads its package. @throws {SessionError} if it cannot be used here, such as `KEY_MISSING` or
 * `DRIVER_MISSING`; it is never replaced by another model.
 */
export async function makeModelOf(
  { header: { id } }: SessionHead,
  name: string | null,
  make: (name: string) => Model = createModel,
): Promise<Model> {
  if (name === null) {
    const text = `Session ${id} was answered by a model that its log does not name; choose a model with --model.`;
    throw new SessionError("MODEL_NOT_FOUND", text);
  }
  try {
    const model = make(name);
    await model.prepare?.();
    return model;
  } catch (cause) {
    if (!(cause instanceof SessionError)) throw cause;
    const text = `${cause.message} Session ${id} was answered by ${name}; choose another model with --model.`;
    throw new SessionError(cause.code, text, { cause });
  }
}

/** The model for a command on a session: the named one, else the session's own. */
export async function modelFor(store: SessionStore, head: SessionHead, named: string | undefined): Promise<Model> {
  return named === undefined ? makeModelOf(head, await modelNameOf(store, head)) : createModel(named);
}
