import type { EntryDraft } from "../session/entry.ts";
import { SessionError, SessionNotFoundError } from "../session/errors.ts";
import { createHeader, type SessionHeader } from "../session/header.ts";
import type { AppendOptions, AppendResult, SessionStore } from "../session/store.ts";

/** Appends to the session of a header, which is made when it is not there yet. */
export async function appendToSession(
  store: SessionStore,
  header: Partial<SessionHeader> & Pick<SessionHeader, "id">,
  drafts: readonly EntryDraft[],
  options: AppendOptions = {},
): Promise<AppendResult> {
  try {
    return await store.append(header.id, drafts, options);
  } catch (error) {
    if (!(error instanceof SessionNotFoundError)) throw error;
  }
  await store.create(createHeader(header)).catch((error: unknown) => {
    // Another process may have begun the session meanwhile.
    if (!(error instanceof SessionError && error.code === "SESSION_EXISTS")) throw error;
  });
  return store.append(header.id, drafts, options);
}
