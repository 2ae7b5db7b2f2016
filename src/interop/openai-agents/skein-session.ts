import type { AgentInputItem, Session } from "@openai/agents";
import { uuidv7 } from "../../internal/uuid.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionConflictError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { createHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { walkUp } from "../../tree/path-reader.ts";
import { appendToSession } from "../append-to-session.ts";
import { derivedSessionId } from "../derived-session-id.ts";
import { draftOf, itemOf } from "./item-entry.ts";

const TRIES_MAX = 20;

/** Which session, and whose. */
export interface SkeinSessionOptions {
  /** Default: a new one. */
  readonly sessionId?: string;
  /** The user of a session that is new. */
  readonly userId?: string;
}

/**
 * The session of the OpenAI Agents SDK on any store.
 *
 * - An item is an entry on the path to the leaf, and what was said is a turn, so that search and the studio find it.
 * - Taking items away moves the leaf: the log keeps what was said.
 * - Several processes may use the same session; each of them takes another item when they pop at once.
 */
export class SkeinSession implements Session {
  readonly #store: SessionStore;
  readonly #options: SkeinSessionOptions;
  readonly #foreignId: string;
  readonly #sessionId: string;

  constructor(store: SessionStore, options: SkeinSessionOptions = {}) {
    this.#store = store;
    this.#options = options;
    this.#foreignId = options.sessionId ?? uuidv7();
    this.#sessionId = derivedSessionId("openai-agents", this.#foreignId);
  }

  /** The id that the session was opened with. */
  async getSessionId(): Promise<string> {
    return this.#foreignId;
  }

  /** The items on the path, oldest first; the last `limit` of them. Costs what it gives. */
  async getItems(limit: number = Number.POSITIVE_INFINITY): Promise<AgentInputItem[]> {
    const items: AgentInputItem[] = [];
    if (limit <= 0) return items;
    for await (const { item } of this.#itemsUp((await this.#head())?.leafId ?? null)) {
      items.push(item);
      if (items.length >= limit) break;
    }
    return items.reverse();
  }

  /** Appends items; they land together, up to 10,000 of them. */
  async addItems(items: AgentInputItem[]): Promise<void> {
    const drafts = items.map(draftOf);
    const header = { id: this.#sessionId, userId: this.#options.userId ?? null };
    if (drafts.length > 0) await appendToSession(this.#store, header, drafts);
  }

  /** Moves the leaf before the last item, and gives that. */
  async popItem(): Promise<AgentInputItem | undefined> {
    for (let tries = 1; ; tries++) {
      const head = await this.#head();
      const last = await this.#itemsUp(head?.leafId ?? null).next();
      if (head === null || last.done === true) return undefined;
      try {
        const options = { expectedVersion: head.version };
        await this.#store.append(this.#sessionId, [{ type: "leaf", targetId: last.value.entry.parentId }], options);
        return last.value.item;
      } catch (error) {
        if (!(error instanceof SessionConflictError) || tries >= TRIES_MAX) throw error;
      }
    }
  }

  /** Moves the leaf before the root. */
  async clearSession(): Promise<void> {
    if ((await this.#head()) !== null) await this.#store.append(this.#sessionId, [{ type: "leaf", targetId: null }]);
  }

  /** A session of its own that begins with what this one has now. Costs the same whatever that is. */
  async fork(options: SkeinSessionOptions = {}): Promise<SkeinSession> {
    const fork = new SkeinSession(this.#store, options);
    const head = await this.#head();
    if (head === null) return fork;
    const lineage = { parents: [this.#sessionId], operator: "fork", kind: "op_fork", extras: [] } as const;
    const userId = options.userId ?? head.header.userId;
    await this.#store.fork(this.#sessionId, createHeader({ id: fork.#sessionId, userId, lineage }));
    return fork;
  }

  #head(): Promise<SessionHead | null> {
    return this.#store.head(this.#sessionId);
  }

  async *#itemsUp(
    leafId: string | null,
  ): AsyncGenerator<{ readonly entry: Entry; readonly item: AgentInputItem }, void, undefined> {
    if (leafId === null) return;
    for await (const entry of walkUp(this.#store, this.#sessionId, leafId)) {
      const item = itemOf(entry);
      if (item !== null) yield { entry, item };
    }
  }
}
