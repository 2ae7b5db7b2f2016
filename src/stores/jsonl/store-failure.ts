import { SessionError } from "../../session/errors.ts";

/** What is known of a log does not fit its file any more: it must be loaded anew. */
export class StaleView extends Error {}

/** The error for something that the file system would not do. */
export function storeFailed(what: string, cause: unknown): SessionError {
  const reason = cause instanceof Error ? cause.message.replace(/\.$/, "") : String(cause);
  return new SessionError("STORE_FAILED", `${what}: ${reason}.`, { cause });
}

/** The error that a caller of the store sees for what went wrong within it. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof StaleView)
    return storeFailed("The session's file changed again and again while it was read", error);
  const fromSystem = error instanceof Error && !(error instanceof SessionError) && "syscall" in error;
  if (!fromSystem) return error;
  const { code, path } = error as NodeJS.ErrnoException;
  if (code === "ENOTDIR" && path !== undefined) {
    const message = `${path} is no directory, or lies in none; name a directory for the store.`;
    return new SessionError("STORE_FAILED", message, { cause: error });
  }
  return storeFailed("The store's files could not be used", error);
}

/** Runs a task; what the file system or a changing file makes of it becomes a `SessionError`. */
export async function withStoreErrors<T>(task: () => T | Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    throw asStoreError(error);
  }
}

/** For a call that fails because a file is missing: null. */
export function missingAsNull(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
  throw error;
}

/** What a call of the file system gives, or null when a file is missing. */
export function nullIfMissing<T>(task: () => T): T | null {
  try {
    return task();
  } catch (error) {
    return missingAsNull(error);
  }
}
