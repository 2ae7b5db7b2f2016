import { normalize } from "node:path";
import { programOf } from "../interop/formats/program-of.ts";
import type { Actor } from "../lifecycle/access.ts";
import type { SessionManager } from "../lifecycle/session-manager.ts";
import { isIn } from "../sandboxes/local/follow-links.ts";
import { SessionError, SessionNotFoundError } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { namedPath } from "../stores/named-path.ts";
import type { Answer } from "./answer.ts";

/** Whose sessions are shown, and which of them. */
export interface SessionScopeInit {
  readonly manager: SessionManager;
  readonly actor: Actor;
  /** Only sessions of this directory; null for those of all directories. */
  readonly directory: string | null;
  /** No sessions of these directories and of those below them. */
  readonly excluded: readonly string[];
}

/** The conditions that tools have for sessions. */
export interface SessionFilter {
  readonly directory?: string | undefined;
  readonly program?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** The sessions that a caller of the tools may see. All others count as missing. */
export class SessionScope {
  readonly manager: SessionManager;
  readonly as: { readonly actor: Actor };
  readonly directory: string | null;
  readonly #excluded: readonly string[];

  constructor({ manager, actor, directory, excluded }: SessionScopeInit) {
    this.manager = manager;
    this.as = { actor };
    this.directory = directory;
    this.#excluded = excluded;
  }

  /** The query of a store for the sessions of a directory; null if none of them is in scope. */
  queryFor({ directory }: SessionFilter): { readonly userId?: string; readonly cwd?: string } | null {
    const { actor } = this.as;
    const asked = directory === undefined ? this.directory : namedPath(directory);
    if (this.directory !== null && asked !== this.directory) return null;
    const userId = typeof actor === "string" ? actor : actor.admin === true ? undefined : actor.userId;
    return { ...(userId !== undefined && { userId }), ...(asked !== null && { cwd: asked }) };
  }

  includes({ header: { cwd } }: SessionHead): boolean {
    if (this.directory !== null && cwd !== this.directory) return false;
    return cwd === null || this.#excluded.every((excluded) => !isIn(normalize(cwd), excluded));
  }

  /** The head of a session in scope. @throws {SessionNotFoundError} for every other one. */
  async head(id: string): Promise<SessionHead> {
    const head = await this.manager.head(id, this.as);
    if (head === null || !this.includes(head)) throw new SessionNotFoundError(id);
    return head;
  }
}

/** A session on one line: its id, name, program, directory and time. */
export function originOf(answer: Answer, head: SessionHead): string {
  const { header, name, firstMessage, modifiedAt, messageCount } = head;
  const title = name ?? firstMessage;
  return [
    answer.value(header.id, 512),
    ...(title === null ? [] : [answer.value(title)]),
    `from ${programOf(head)}`,
    header.cwd === null ? "no directory" : `directory ${answer.value(header.cwd, 300)}`,
    `${messageCount} messages`,
    `last message ${modifiedAt}`,
  ].join(", ");
}

/**
 * Whether a session has the wanted program, and existed in the wanted time: it was created before `to`, and its last message is
 * not before `from`.
 */
export function matchesFilter(head: SessionHead, { program, from, to }: SessionFilter): boolean {
  if (program !== undefined && programOf(head).toLowerCase() !== program.toLowerCase()) return false;
  if (from !== undefined && head.modifiedAt < momentOf(from)) return false;
  return to === undefined || head.header.createdAt < momentOf(to);
}

function momentOf(text: string): string {
  const time = Date.parse(text);
  if (Number.isNaN(time)) {
    throw new SessionError(
      "INVALID_OPTION",
      `${JSON.stringify(text.slice(0, 40))} is not a time; give one such as 2026-11-18.`,
    );
  }
  return new Date(time).toISOString();
}
