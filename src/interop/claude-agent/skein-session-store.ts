import { checkStoreArgument } from "../../session/check-arguments.ts";
import { LruCache } from "../../internal/lru-cache.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { listedHeads } from "../../stores/complete/list-pages.ts";
import { appendToSession } from "../append-to-session.ts";
import { derivedSessionId } from "../derived-session-id.ts";
import { messageIdOf, draftOf, lineOf, type TranscriptKey, type TranscriptLine } from "./transcript-line.ts";

const SESSIONS_REMEMBERED = 1000;

/**
 * The `SessionStore` of the Claude Agent SDK on any store: give it as `sessionStore` to `query`.
 *
 * - A transcript is a session and a line is an entry. Messages are turns, so that search and the studio find them.
 * - A line whose `uuid` is stored already is not stored again.
 * - `projectKey` is the session's `cwd`; a transcript of a sub-agent is a session below the main one.
 */
export class SkeinSessionStore {
  readonly #store: SessionStore;
  /** The id of the last answer of each session. All lines of an answer carry its usage, which must be counted once. */
  readonly #answers = new LruCache<string, string>(SESSIONS_REMEMBERED);

  constructor(store: SessionStore) {
    checkStoreArgument(store, "SkeinSessionStore");
    this.#store = store;
  }

  /**
   * The id of the session that stores a transcript.
   *
   * @throws {SessionError} `DRIVER_VERSION` for a key of another form, which an unsupported version of the SDK may pass.
   */
  sessionIdOf({ projectKey, sessionId, subpath }: TranscriptKey): string {
    fits(typeof projectKey === "string" && typeof sessionId === "string", "a key with a projectKey and a sessionId");
    return derivedSessionId("claude-agent", JSON.stringify([projectKey, sessionId, subpath ?? null]));
  }

  /** Appends lines in one atomic append (of more than 10,000: in several). */
  async append(key: TranscriptKey, entries: readonly TranscriptLine[]): Promise<void> {
    const id = this.sessionIdOf(key);
    fits(Array.isArray(entries) && entries.every((line) => typeof line?.type === "string"), "lines that have a type");
    const drafts = entries.map((line) => {
      const answer = messageIdOf(line);
      const counts = answer === null || this.#answers.get(id) !== answer;
      if (answer !== null) this.#answers.set(id, answer);
      return draftOf(line, counts);
    });
    if (drafts.length === 0) return;
    try {
      await appendToSession(this.#store, this.#header(key), drafts);
    } catch (error) {
      if (!(error instanceof SessionError && error.code === "ENTRY_EXISTS")) throw error;
      const fresh = await this.#notStored(id, drafts);
      if (fresh.length > 0) await this.#store.append(id, fresh);
    }
  }

  /** All lines in the order of their appends; null if the transcript was never written. */
  async load(key: TranscriptKey): Promise<TranscriptLine[] | null> {
    const id = this.sessionIdOf(key);
    if ((await this.#store.head(id)) === null) return null;
    const lines: TranscriptLine[] = [];
    for await (const entry of this.#store.read(id)) {
      const line = lineOf(entry);
      if (line !== null) lines.push(line);
    }
    return lines;
  }

  /** The main transcripts of a project, with the time of the last append in milliseconds. */
  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    fits(typeof projectKey === "string", "a projectKey");
    const found: { sessionId: string; mtime: number }[] = [];
    for await (const { header, updatedAt } of listedHeads(this.#store, { cwd: projectKey })) {
      const { sessionId, subpath } = keyIn(header) ?? {};
      if (sessionId !== undefined && subpath === undefined) found.push({ sessionId, mtime: Date.parse(updatedAt) });
    }
    return found;
  }

  /** The transcripts of a session's sub-agents. */
  async listSubkeys(key: TranscriptKey): Promise<string[]> {
    const found: string[] = [];
    for await (const { header } of this.#subAgents(key)) found.push(keyIn(header)?.subpath as string);
    return found;
  }

  /** Deletes a transcript; deleting a main one deletes those of its sub-agents. They can be undeleted until a purge. */
  async delete(key: TranscriptKey): Promise<void> {
    if (key.subpath === undefined) {
      const ids: string[] = [];
      for await (const { header } of this.#subAgents(key)) ids.push(header.id);
      for (const id of ids) await this.#store.delete(id);
    }
    await this.#store.delete(this.sessionIdOf(key));
  }

  #header(key: TranscriptKey): Partial<SessionHeader> & Pick<SessionHeader, "id"> {
    const { projectKey, sessionId, subpath } = key;
    const main = this.sessionIdOf({ projectKey, sessionId });
    const lineage = { parents: [main], operator: "claude-agent", kind: "unknown", extras: [] } as const;
    return {
      id: this.sessionIdOf(key),
      cwd: projectKey,
      metadata: { claudeAgent: { projectKey, sessionId, ...(subpath === undefined ? {} : { subpath }) } },
      ...(subpath === undefined ? {} : { lineage }),
    };
  }

  async *#subAgents({ projectKey, sessionId }: TranscriptKey): AsyncGenerator<SessionHead> {
    const parentId = this.sessionIdOf({ projectKey, sessionId });
    for await (const head of listedHeads(this.#store, { parentId }))
      if (keyIn(head.header)?.subpath !== undefined) yield head;
  }

  async #notStored(id: string, drafts: readonly EntryDraft[]): Promise<EntryDraft[]> {
    const stored = await Promise.all(
      drafts.map((draft) => (draft.id === undefined ? null : this.#store.getEntry(id, draft.id))),
    );
    return drafts.filter((_, index) => stored[index] === null);
  }
}

/** @throws {SessionError} `DRIVER_VERSION` if the SDK passed arguments of another form than expected. */
function fits(asExpected: boolean, what: string): void {
  if (asExpected) return;
  throw new SessionError(
    "DRIVER_VERSION",
    `A transcript needs ${what}: use a version of @anthropic-ai/claude-agent-sdk that docs/from-claude-agent.md names.`,
  );
}

function keyIn({ metadata }: SessionHeader): TranscriptKey | undefined {
  return metadata["claudeAgent"] as TranscriptKey | undefined;
}
