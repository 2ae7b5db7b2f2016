import type { EntryDraft } from "../session/log/entry.ts";
import { SessionError, SessionNotFoundError } from "../session/errors.ts";
import { createHeader, type SessionHeader } from "../session/log/header.ts";
import { APPEND_ENTRIES_MAX } from "../session/limits.ts";
import type { AppendOptions, AppendResult, SessionStore } from "../session/store.ts";

/**
 * Appends to the session that the header names, and creates that session if it does not exist. Up to 10,000 drafts are one
 * atomic append; more are appended in parts of 10,000. Returns the result of the last append.
 */
export async function appendToSession(
  store: SessionStore,
  header: Partial<SessionHeader> & Pick<SessionHeader, "id">,
  drafts: readonly EntryDraft[],
  options: AppendOptions = {},
): Promise<AppendResult> {
  const result = await appendPart(store, header, drafts.slice(0, APPEND_ENTRIES_MAX), options);
  if (drafts.length <= APPEND_ENTRIES_MAX) return result;
  const below = result.entries[result.entries.length - 1]?.id as string;
  return appendToSession(store, header, drafts.slice(APPEND_ENTRIES_MAX), { below });
}

async function appendPart(
  store: SessionStore,
  header: Partial<SessionHeader> & Pick<SessionHeader, "id">,
  drafts: readonly EntryDraft[],
  options: AppendOptions,
): Promise<AppendResult> {
  try {
    return await store.append(header.id, drafts, options);
  } catch (error) {
    if (!(error instanceof SessionNotFoundError)) throw error;
  }
  await store.create(createHeader(header)).catch((error: unknown) => {
    // Another process may have created the session meanwhile.
    if (!(error instanceof SessionError && error.code === "SESSION_EXISTS")) throw error;
  });
  return store.append(header.id, drafts, options);
}
