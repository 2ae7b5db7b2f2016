import { LogFollower } from "../agent/persist/log-follower.ts";
import { chooseSetup, type PresentSetup, readSetup, type SentSetup } from "../agent/persist/run-setup.ts";
import type { SessionRoom } from "../tree/tree-backing.ts";
import { contextPath } from "../session/context/context.ts";
import { type Entry, type EntryDraft, isNode } from "../session/log/entry.ts";
import { LeaseLostError, SessionConflictError, SessionError } from "../session/errors.ts";
import { isOwn, type SessionHead } from "../session/log/fold.ts";
import { type GroupState, stepGroup } from "../session/log/group-state.ts";
import type { RecordedEvent } from "../session/log/run-event.ts";
import { type RunState, stepRun } from "../session/log/run-fold.ts";
import type { Guard, SessionStore } from "../session/store.ts";
import { pathAt, readBranch, readContextEntries } from "../tree/path-reader.ts";
import type { SessionTree } from "../tree/session-tree.ts";
import { contextItems, type GroupItem, itemsOf } from "./agent-view.ts";

const TRIES_MAX = 100;
/** Errors about the entry, as opposed to the session or the store. */
const ENTRY_FAULTS: ReadonlySet<string> = new Set(["INVALID_ENTRY", "INVALID_VALUE", "INVALID_ID", "TOO_LARGE"]);

/** The parts of a group's log. */
export interface GroupLogInit {
  readonly tree: SessionTree;
  /** The guard of each append. */
  readonly guard: Guard;
  /** The folded state of the group's run before this claim, and the position up to which the log was read. */
  readonly run: RunState;
  readonly from: number;
  /** Called when an append is refused because another process has the session. */
  readonly onLost: () => void;
  /** Called with each event that the log records from then on. */
  readonly onEvent: (event: RecordedEvent, seq: number) => void;
}

/**
 * The log of a session for a group.
 *
 * Reads the context once, and after that only new entries. Users may add turns in the meantime, which the agents then
 * see; appends follow them on the same path.
 */
export class GroupLog {
  readonly #tree: SessionTree;
  readonly #guard: Guard;
  readonly #onLost: () => void;
  readonly #onEvent: (event: RecordedEvent, seq: number) => void;
  #run: RunState;
  /** The position up to which entries were folded into the run. */
  #folded: number;
  #items: GroupItem[] = [];
  #progress: GroupState | null = null;
  #version = 0;
  #leafId: string | null = null;
  #messageId: string | null = null;
  #broken: unknown = null;
  #edits = 0;

  private constructor({ tree, guard, run, from, onLost, onEvent }: GroupLogInit) {
    this.#tree = tree;
    this.#guard = guard;
    this.#run = run;
    this.#folded = from;
    this.#onLost = onLost;
    this.#onEvent = onEvent;
  }

  static async open(init: GroupLogInit): Promise<GroupLog> {
    const log = new GroupLog(init);
    await log.#load();
    return log;
  }

  get store(): SessionStore {
    return this.#tree.store;
  }

  get header(): SessionHead["header"] {
    return this.#tree.head.header;
  }

  get leafId(): string | null {
    return this.#leafId;
  }

  head(): Promise<SessionHead> {
    return this.#tree.refresh();
  }

  /** The folded state of the group's run. */
  get run(): RunState {
    return this.#run;
  }

  /** The group's progress with its latest message; null if it has none. */
  get progress(): GroupState | null {
    return this.#progress;
  }

  get items(): readonly GroupItem[] {
    return this.#items;
  }

  /** The version of the session's log, as far as it is known here. */
  get version(): number {
    return this.#version;
  }

  /**
   * The number of edits of the context that were read: after a further one, the items are those that models see now.
   */
  get edits(): number {
    return this.#edits;
  }

  /**
   * The error because of which nothing can be appended any more: the session is closed or full, or the lease or the
   * store is lost.
   */
  get broken(): unknown {
    return this.#broken;
  }

  /** From here on, the group answers this message. If the log no longer has it, that is a conflict. */
  answer(messageId: string): void {
    this.#messageId = messageId;
  }

  /** How many more turns the session can take; null if there is no limit. */
  get room(): SessionRoom | null {
    return this.#tree.room;
  }

  /** Follows what others append from here on. */
  follow(onEntry: (entry: Entry) => void): LogFollower {
    return new LogFollower(this.#tree.store, this.#tree.id, this.#version, onEntry);
  }

  /** Reads what others have appended in the meantime. */
  async refresh(): Promise<void> {
    const { store, id } = this.#tree;
    let isElsewhere = false;
    for await (const entry of store.read(id, { after: this.#version - 1 })) {
      isElsewhere ||= ["leaf", "compaction", "compaction_undone", "context_edit"].includes(entry.type);
      this.#take(entry);
    }
    if (isElsewhere) await this.#load();
  }

  /** Appends at the end of the path; `guard` overrides the guard of every append. */
  async append(drafts: readonly EntryDraft[], guard: Guard = {}): Promise<readonly Entry[]> {
    try {
      return await this.#append(drafts, { ...this.#guard, ...guard });
    } catch (error) {
      if (error instanceof LeaseLostError) this.#onLost();
      if (!(error instanceof SessionError && ENTRY_FAULTS.has(error.code))) this.#broken ??= error;
      throw error;
    }
  }

  /**
   * The setup of an agent's requests, and the agent's `setup` entry in the log. Instructions are recorded as
   * a digest: agents of a group do not read each other's.
   */
  async setupOf(given: PresentSetup): Promise<SentSetup> {
    const present = { ...given, recordsInstructions: false };
    const { agent } = present.setup;
    const { store } = this.#tree;
    const recordedId = this.#run.agentSetups.get(agent);
    const recorded = await readSetup(store, this.header, recordedId);
    const lastId = recorded === null ? await this.#lastSetup(agent) : recordedId;
    const last = lastId === recordedId ? recorded : await readSetup(store, this.header, lastId);
    const kept = recorded === null ? null : { setup: recorded.setup, model: present.model };
    const { sent, drafts } = chooseSetup(present, kept, last);
    if (drafts.length > 0) await this.append(drafts);
    return sent;
  }

  async #lastSetup(agent: string): Promise<string | undefined> {
    const head = await this.head();
    const { setups } = await this.store.settings(head.header.id, await pathAt(this.store, head, this.#leafId));
    return Object.hasOwn(setups, agent) ? setups[agent] : undefined;
  }

  /** Appends facts about the run, wherever the leaf is. */
  async note(drafts: readonly EntryDraft[]): Promise<void> {
    await this.#tree.appendAll(drafts, { guard: this.#guard, run: this.#run.runId });
    await this.refresh();
  }

  async #append(drafts: readonly EntryDraft[], guard: Guard): Promise<readonly Entry[]> {
    for (let tries = 1; ; tries++) {
      try {
        const options = { guard, expectedVersion: this.#version, run: this.#run.runId };
        const { entries } = await this.#tree.appendAll(drafts, options);
        for (const entry of entries) this.#take(entry);
        if (entries.some(({ type }) => type === "context_edit")) await this.#load();
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
    for await (const entry of store.read(id, { after: this.#folded - 1, before: head.version })) this.#fold(entry);
    const entries = head.leafId === null ? [] : await readContextEntries(store, head, head.leafId);
    this.#version = head.version;
    this.#leafId = head.leafId;
    const { compaction, entries: visible } = contextPath(entries, new Set(head.undone));
    this.#items = [...contextItems({ compaction, entries: visible })];
    // An inherited group run continues in its source session, or not at all.
    const stepOwn = (progress: GroupState | null, entry: Entry): GroupState | null =>
      isOwn(head.header, entry, entry.seq) ? stepGroup(progress, entry) : progress;
    this.#progress = entries.reduce(stepOwn, null);
    // A compaction may have replaced the message that the group is still answering.
    if (this.#progress === null && compaction !== null && head.leafId !== null) {
      this.#progress = (await readBranch(store, id, head.leafId)).reduce(stepOwn, null);
    }
    if (this.#messageId !== null && this.#progress?.messageId !== this.#messageId) throw this.#movedAway();
  }

  #take(entry: Entry): void {
    this.#version = Math.max(this.#version, entry.seq + 1);
    this.#fold(entry);
    if (!isNode(entry) || entry.parentId !== this.#leafId) return;
    this.#leafId = entry.id;
    this.#progress = stepGroup(this.#progress, entry);
    this.#items.push(...itemsOf(entry));
  }

  #fold(entry: Entry): void {
    if (entry.seq < this.#folded) return;
    this.#folded = entry.seq + 1;
    if (entry.type === "context_edit") this.#edits += 1;
    const { state, event } = stepRun(this.#run, entry, this.header);
    this.#run = state;
    if (event !== null) this.#onEvent(event, entry.seq);
  }

  #movedAway(): SessionError {
    return new SessionError(
      "CONFLICT",
      `Session ${this.#tree.id} was moved away from message ${this.#messageId} while a group answered it; run the group again from where the session is now.`,
    );
  }
}
