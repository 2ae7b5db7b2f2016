import { LogEar } from "../agent/persist/run-ears.ts";
import type { SessionRoom } from "../tree/tree-backing.ts";
import { contextPath } from "../session/context/context.ts";
import { type Entry, type EntryDraft, isNode } from "../session/log/entry.ts";
import { SessionConflictError, SessionError } from "../session/errors.ts";
import { inheritedCount } from "../session/log/fold.ts";
import type { Guard } from "../session/store.ts";
import { readBranch, readContextEntries } from "../tree/path-reader.ts";
import type { SessionTree } from "../tree/session-tree.ts";
import { contextItems, type GroupItem, itemsOf } from "./agent-view.ts";
import { type GroupProgress, stepProgress } from "./group-progress.ts";

const TRIES_MAX = 100;
/** What is wrong with the entry and not with the session or the store. */
const ENTRY_FAULTS: ReadonlySet<string> = new Set(["INVALID_ENTRY", "INVALID_VALUE", "INVALID_ID", "TOO_LARGE"]);

/**
 * A session's log as a group works on it.
 *
 * What is here is what the log says: the context, read once, and since then only what is new. People may add turns
 * meanwhile, which the agents then see; an append lands after them, on the same path.
 */
export class GroupLog {
  readonly #tree: SessionTree;
  readonly #guard: Guard;
  #items: GroupItem[] = [];
  #progress: GroupProgress | null = null;
  #version = 0;
  #leafId: string | null = null;
  #messageId: string | null = null;
  #broken: unknown = null;

  private constructor(tree: SessionTree, guard: Guard) {
    this.#tree = tree;
    this.#guard = guard;
  }

  static async open(tree: SessionTree, guard: Guard): Promise<GroupLog> {
    const log = new GroupLog(tree, guard);
    await log.#load();
    return log;
  }

  /** How far the group has come with the latest message that it was given; null when it was never given one. */
  get progress(): GroupProgress | null {
    return this.#progress;
  }

  get items(): readonly GroupItem[] {
    return this.#items;
  }

  /** The version of the session's log as far as it is known here. */
  get version(): number {
    return this.#version;
  }

  /** Why nothing can be appended any more: the session is closed or full, the lease or the store is lost. */
  get broken(): unknown {
    return this.#broken;
  }

  /** From here on the group answers that message; a log that does not hold it any more is a conflict. */
  answer(messageId: string): void {
    this.#messageId = messageId;
  }

  /** How much room the session has; null where it is not limited. */
  get room(): SessionRoom | null {
    return this.#tree.room;
  }

  /** Hears what others append from here on. */
  earFor(tell: (entry: Entry) => void): LogEar {
    return new LogEar(this.#tree.store, this.#tree.id, this.#version, tell);
  }

  /** Reads what others have appended meanwhile. */
  async refresh(): Promise<void> {
    const { store, id } = this.#tree;
    for await (const entry of store.read(id, { after: this.#version - 1 })) {
      const { type } = entry;
      if (type === "leaf" || type === "compaction" || type === "compaction_undone") return this.#load();
      this.#take(entry);
    }
  }

  /** Appends at the end of the path; `guard` goes before what holds for every append. */
  async append(drafts: readonly EntryDraft[], guard: Guard = {}): Promise<readonly Entry[]> {
    try {
      return await this.#append(drafts, { ...this.#guard, ...guard });
    } catch (error) {
      if (!(error instanceof SessionError && ENTRY_FAULTS.has(error.code))) this.#broken ??= error;
      throw error;
    }
  }

  /** Appends facts about the run, wherever the leaf is. */
  async note(drafts: readonly EntryDraft[]): Promise<void> {
    await this.#tree.appendAll(drafts, { guard: this.#guard });
  }

  async #append(drafts: readonly EntryDraft[], guard: Guard): Promise<readonly Entry[]> {
    for (let tries = 1; ; tries++) {
      try {
        const options = { guard, expectedVersion: this.#version };
        const { entries } = await this.#tree.appendAll(drafts, options);
        for (const entry of entries) this.#take(entry);
        return entries;
      } catch (error) {
        if (!(error instanceof SessionConflictError) || tries >= TRIES_MAX) throw error;
        await this.refresh();
      }
    }
  }

  async #load(): Promise<void> {
    const head = await this.#tree.refresh();
    const { store, id } = this.#tree;
    const entries = head.leafId === null ? [] : await readContextEntries(store, head, head.leafId);
    this.#version = head.version;
    this.#leafId = head.leafId;
    const { compaction, entries: visible } = contextPath(entries, new Set(head.undone));
    this.#items = [...contextItems({ compaction, entries: visible })];
    // A group that came with a fork or an import works elsewhere, if at all.
    const stepOwn = (progress: GroupProgress | null, entry: Entry): GroupProgress | null =>
      entry.seq < inheritedCount(head.header) ? progress : stepProgress(progress, entry);
    this.#progress = entries.reduce(stepOwn, null);
    // A compaction may have left the message behind that the group still answers.
    if (this.#progress === null && compaction !== null && head.leafId !== null) {
      this.#progress = (await readBranch(store, id, head.leafId)).reduce(stepOwn, null);
    }
    if (this.#messageId !== null && this.#progress?.messageId !== this.#messageId) throw this.#movedAway();
  }

  #take(entry: Entry): void {
    this.#version = Math.max(this.#version, entry.seq + 1);
    if (!isNode(entry) || entry.parentId !== this.#leafId) return;
    this.#leafId = entry.id;
    this.#progress = stepProgress(this.#progress, entry);
    this.#items.push(...itemsOf(entry));
  }

  #movedAway(): SessionError {
    return new SessionError(
      "CONFLICT",
      `Session ${this.#tree.id} was moved away from message ${this.#messageId} while a group answered it; run the group again from where the session is now.`,
    );
  }
}
