import { checkArgument } from "../session/check-arguments.ts";
import type { JsonValue } from "../internal/json.ts";
import type { ModelContext } from "../session/context/context.ts";
import {
  type Entry,
  type EntryDraft,
  type EntryOf,
  type EntryStamp,
  isNode,
  type ThinkingLevel,
} from "../session/log/entry.ts";
import { notANode, SessionConflictError, SessionNotFoundError, UnknownEntryError } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SessionHeader } from "../session/log/header.ts";
import type { Settings } from "../session/log/settings.ts";
import type { CompactionView } from "../session/context/compaction.ts";
import type { Content, Message } from "../session/message.ts";
import type { HookRunner } from "../session/context/hooks.ts";
import type { Session } from "../session/value/session.ts";
import type { AppendOptions, AppendResult, Guard, SessionStore } from "../session/store.ts";
import { labelsOn, type TreeNode } from "../session/log/tree.ts";
import type { Usage } from "../session/usage.ts";
import type { Damage } from "../stores/jsonl/index.ts";
import { inspectCompactionOf, undoCompactionOf } from "./compaction-calls.ts";
import { type FileOptions, hookRunner, type StoreTreeOptions, type TreeOptions } from "./file-options.ts";
import { continueRecent, createFile, createInMemory, derivedHeader, forkFile, openFile } from "./file-trees.ts";
import { isOnPath, readBranch, readContext, readContextEntries } from "./path-reader.ts";
import { pruneBranchOf } from "./prune-branch.ts";
import { readSession, readTranscript, withOrigin } from "./read-session.ts";
import { type OpenedSession, type SessionRoom, StoreBacking, type TreeBacking } from "./tree-backing.ts";
import { TreeView } from "./tree-view.ts";

const TRIES_MAX = 20;

type SummaryFields = Omit<EntryOf<"branch_summary">, keyof EntryStamp | "type" | "fromId">;

/**
 * One session opened for reading, navigating and appending.
 *
 * - Every `append…` and `set…` resolves to the entry once it is durable.
 * - Nothing is ever discarded: moving the leaf, labels, pruning and undoing are entries too.
 * - `leafId` and `version` are those of this tree's last call; every reading method looks at the store first.
 */
export class SessionTree implements AsyncDisposable {
  readonly #backing: TreeBacking;
  #head: SessionHead;
  #view: TreeView | null = null;
  readonly #hooks: HookRunner;

  private constructor({ backing, head }: OpenedSession, options: TreeOptions) {
    this.#backing = backing;
    this.#head = head;
    this.#hooks = hookRunner(options);
  }

  /** A new session of a project, kept in a file once it holds what `persistFrom` says. */
  static async create(cwd: string, options: FileOptions = {}): Promise<SessionTree> {
    return new SessionTree(await createFile(cwd, options), options);
  }

  /** The session in a file. */
  static async open(path: string, options: FileOptions = {}): Promise<SessionTree> {
    return new SessionTree(await openFile(path, options), options);
  }

  /** The project's session with the latest message, or a new one. */
  static async continueRecent(cwd: string, options: FileOptions = {}): Promise<SessionTree> {
    return new SessionTree(await continueRecent(cwd, options), options);
  }

  /** A session that is never written. */
  static async inMemory(cwd?: string, options: TreeOptions = {}): Promise<SessionTree> {
    return new SessionTree(await createInMemory(cwd), options);
  }

  /** A copy of a file's session, with all its branches, as a new session of another project. */
  static async forkFrom(sourcePath: string, targetCwd: string, options: FileOptions = {}): Promise<SessionTree> {
    const hooks = hookRunner(options);
    const source = { sessionId: sourcePath, entryId: null };
    await hooks.before("beforeFork", source);
    const tree = new SessionTree(await forkFile(sourcePath, targetCwd, options), options);
    await hooks.after("fork", { ...source, newSessionId: tree.id });
    return tree;
  }

  /** A session of any store. Closing the tree leaves the store open. */
  static async on(store: SessionStore, sessionId: string, options: StoreTreeOptions = {}): Promise<SessionTree> {
    const head = await store.head(sessionId);
    if (head === null) throw new SessionNotFoundError(sessionId);
    return new SessionTree({ backing: new StoreBacking(store, options, head.version), head }, options);
  }

  /** The session's id. */
  get id(): string {
    return this.#head.header.id;
  }

  /** The session's first record. */
  get header(): SessionHeader {
    return this.#head.header;
  }

  /** The session's file, or where it will be; null for a session that has none. */
  get path(): string | null {
    return this.#backing.path;
  }

  /** The entry that the next node hangs on; null before the root. */
  get leafId(): string | null {
    return this.#head.leafId;
  }

  /** How many entries the log has. */
  get version(): number {
    return this.#head.version;
  }

  /** What the log added up to at this tree's last call. */
  get head(): SessionHead {
    return this.#head;
  }

  /** What could not be read of a salvaged file. */
  get damage(): readonly Damage[] {
    return this.#backing.damage;
  }

  /** Whether the session is stored anywhere but in memory. */
  get persisted(): boolean {
    return this.#backing.persisted;
  }

  /** Appends one entry of any type. */
  async append(draft: EntryDraft, options?: AppendOptions): Promise<Entry> {
    const { entries } = await this.appendAll([draft], options);
    return entries[0] as Entry;
  }

  /** How many more turns the session takes and how many it may have, as of the last append; null where there is no limit. */
  get room(): SessionRoom | null {
    return this.#backing.roomIn(this.#head);
  }

  /** Appends several entries that land together or not at all. */
  async appendAll(drafts: readonly EntryDraft[], options?: AppendOptions): Promise<AppendResult> {
    const result = await this.#backing.append(this.id, drafts, options);
    if (result.head.version >= this.#head.version) this.#head = result.head;
    return result;
  }

  /** Appends one turn: what a user, a model or a tool said. */
  appendMessage(message: Message, options: { readonly id?: string } = {}): Promise<Entry> {
    return this.append({ type: "message", message, ...options });
  }

  /** Chooses the model of the next turns, on this branch. */
  appendModelChange(provider: string, modelId: string): Promise<Entry> {
    return this.append({ type: "model_change", provider, modelId });
  }

  /** Chooses how hard the model thinks from here on, on this branch. */
  appendThinkingLevelChange(thinkingLevel: ThinkingLevel): Promise<Entry> {
    return this.append({ type: "thinking_level_change", thinkingLevel });
  }

  /** Replaces what lies before `firstKeptEntryId` by a summary, in the context only. */
  appendCompaction(init: Omit<EntryOf<"compaction">, keyof EntryStamp | "type">): Promise<Entry> {
    return this.append({ ...init, type: "compaction" });
  }

  /** Keeps data of your own on the path; a model never sees it. */
  appendCustom(customType: string, data?: JsonValue): Promise<Entry> {
    return this.append({ type: "custom", customType, ...(data === undefined ? {} : { data }) });
  }

  /** Says something of your own to the model, shown to people when `display` is true. */
  appendCustomMessage(init: {
    customType: string;
    content: Content;
    display: boolean;
    details?: JsonValue;
  }): Promise<Entry> {
    return this.append({ ...init, type: "custom_message" });
  }

  /** Puts a label on any entry; null takes it off. */
  setLabel(targetId: string, label: string | null): Promise<Entry> {
    return this.append({ type: "label", targetId, label });
  }

  /** Names the session; an empty name takes the name off. */
  setName(name: string): Promise<Entry> {
    return this.append({ type: "session_info", name });
  }

  /** Sets and removes variables from here on, on this branch. */
  setVariables(set: Readonly<Record<string, JsonValue>>, unset: readonly string[] = []): Promise<Entry> {
    return this.append({ type: "variables", set, unset });
  }

  /** Sets what the next request begins with, from here on, on this branch. */
  setSettings(settings: Partial<Omit<Settings, "variables">>): Promise<Entry> {
    return this.append({ type: "variables", set: {}, unset: [], ...settings });
  }

  /** Moves the leaf to an entry; null moves it before the root, so that the next node is a new root. */
  async branch(entryId: string | null): Promise<void> {
    await this.#move(entryId, null);
  }

  /** Moves the leaf and appends there a summary of the branch that is left, with what it cost to write. */
  async branchWithSummary(
    entryId: string | null,
    summary: string,
    details?: JsonValue,
    spent: { readonly usage?: Usage; readonly cost?: number } = {},
  ): Promise<Entry> {
    const [, entry] = await this.#move(entryId, { summary, ...(details === undefined ? {} : { details }), ...spent });
    return entry as Entry;
  }

  /** A new session that holds only the path to an entry, its labels, and a link back. This tree stays as it is. */
  async createBranchedSession(entryId: string, options: FileOptions = {}): Promise<SessionTree> {
    await this.#hooks.before("beforeFork", { sessionId: this.id, entryId });
    const path = await this.getBranch(entryId);
    if (!path.every(isNode)) throw notANode(this.id, entryId);
    const labels = labelsOn(path, await this.entries());
    const imported = path.filter(({ seq }) => seq < (this.header.inherited?.entries ?? 0)).length;
    const header = derivedHeader(
      this.#head,
      { cwd: this.header.cwd, entryId, version: path.length, imported, operator: "createBranchedSession" },
      options,
    );
    const tree = new SessionTree(await this.#backing.derive(header, [...path, ...labels], options), options);
    await this.#hooks.after("fork", { sessionId: this.id, entryId, newSessionId: tree.id });
    return tree;
  }

  /** Hides a side branch for good, unless the leaf (`ACTIVE_PATH`) or an open run (`SESSION_BUSY`) is on it. */
  pruneBranch(entryId: string): Promise<void> {
    return pruneBranchOf(this, entryId);
  }

  /** Whether an entry is the leaf or above it. */
  async isActive(entryId: string): Promise<boolean> {
    const { leafId } = await this.refresh();
    const entry = await this.getEntry(entryId);
    if (entry === null) throw new UnknownEntryError(this.id, entryId);
    return leafId !== null && (await isOnPath(this.#backing.store, this.id, entry, leafId));
  }

  /**
   * Appends an entry while what `check` looked at still holds: whoever appends in between makes it look again. `check`
   * throws to refuse.
   */
  async appendIf(draft: EntryDraft, check: () => Promise<void>, guard: Guard = {}): Promise<Entry> {
    for (let tries = 1; ; tries++) {
      const { version } = await this.refresh();
      await check();
      try {
        return await this.append(draft, { expectedVersion: version, guard });
      } catch (error) {
        if (!(error instanceof SessionConflictError) || tries >= TRIES_MAX) throw error;
      }
    }
  }

  /** Makes the context ignore a compaction (default: the one in force) from here on; later turns stay. */
  undoCompaction(entryId?: string): Promise<void> {
    return undoCompactionOf(this, entryId);
  }

  /** What a compaction dropped from the context, and what it kept. Reads the whole path to it. */
  inspectCompaction(entryId: string): Promise<CompactionView> {
    return inspectCompactionOf(this, entryId);
  }

  /** All entries in log order, facts included. */
  async entries(): Promise<Entry[]> {
    return (await this.#updatedView()).entries();
  }

  /** One entry, or null when there is none of that id. */
  getEntry(id: string): Promise<Entry | null> {
    return this.#backing.store.getEntry(this.id, id);
  }

  /** The nodes right below an entry; those of null are the roots. */
  async getChildren(id: string | null): Promise<Entry[]> {
    return (await this.#updatedView()).children(id);
  }

  /** The entry that the next node will hang on. */
  async getLeaf(): Promise<Entry | null> {
    await this.refresh();
    return this.leafId === null ? null : this.getEntry(this.leafId);
  }

  /** The path from the root to an entry (default: the leaf). */
  async getBranch(entryId?: string): Promise<Entry[]> {
    await this.refresh();
    const to = entryId ?? this.leafId;
    if (to === null) return [];
    const branch = await readBranch(this.#backing.store, this.id, to);
    if (branch.length === 0) throw new UnknownEntryError(this.id, to);
    return branch;
  }

  /** The session's nodes as trees, one for each root. */
  async getTree(): Promise<TreeNode[]> {
    return (await this.#updatedView()).tree();
  }

  /** The label of an entry, or null. */
  async getLabel(id: string): Promise<string | null> {
    return (await this.#updatedView()).label(id);
  }

  /** All labels that count, by entry. */
  async getLabels(): Promise<ReadonlyMap<string, string>> {
    return (await this.#updatedView()).labels();
  }

  /** The session's name, or null. */
  async getName(): Promise<string | null> {
    await this.refresh();
    return this.#head.name;
  }

  /** What the next request to a model consists of, at the leaf or at another node. */
  async buildContext(leafId?: string | null): Promise<ModelContext> {
    await this.refresh();
    return readContext(this.#backing.store, this.#head, leafId);
  }

  /** The entries that the context at the leaf is made of, the compaction in force included, root first. */
  async contextEntries(): Promise<Entry[]> {
    await this.refresh();
    return this.leafId === null ? [] : readContextEntries(this.#backing.store, this.#head, this.leafId);
  }

  /** The value that a loop runs on: what the context at the leaf says, row by row. Costs what the context contains. */
  async toSession(): Promise<Session> {
    const head = await this.refresh();
    const { transcript } = await readTranscript(this.store, head);
    return readSession(this.store, head, withOrigin(transcript, this.store, head));
  }

  /** Where the session is kept; until it is worth a file, that is in memory. */
  get store(): SessionStore {
    return this.#backing.store;
  }

  /** The handlers that this tree was opened with. */
  get hooks(): HookRunner {
    return this.#hooks;
  }

  /** Looks at what others appended. */
  async refresh(): Promise<SessionHead> {
    const head = await this.#backing.store.head(this.id);
    if (head === null) throw new SessionNotFoundError(this.id);
    this.#head = head;
    return head;
  }

  /** Writes a session that still waits in memory for its file. */
  async flush(): Promise<void> {
    this.#head = (await this.#backing.flush(this.id)) ?? this.#head;
  }

  /** Lets go of the file. A lazy session that never became worth a file leaves nothing behind. */
  async close(): Promise<void> {
    await this.#backing.close();
  }

  /** Closes the tree. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Moves the leaf; a handler's summary counts more than the caller's. */
  async #move(entryId: string | null, given: SummaryFields | null): Promise<readonly Entry[]> {
    const { leafId: fromId } = await this.refresh();
    const event = { sessionId: this.id, fromId, targetId: entryId };
    const summary = (await this.#hooks.before("beforeTree", event)) ?? given;
    const drafts: EntryDraft[] = [{ type: "leaf", targetId: entryId }];
    if (summary !== null) drafts.push({ type: "branch_summary", fromId, ...summary });
    const { entries } = await this.appendAll(drafts);
    await this.#hooks.after("tree", event);
    return entries;
  }

  async #updatedView(): Promise<TreeView> {
    this.#view ??= new TreeView(this.id);
    await this.#view.update(this.#backing.store);
    return this.#view;
  }
}

/** @throws {SessionError} `INVALID_OPTION` that names the call, unless the value is a tree. */
export function checkIsTree(tree: unknown, call: string): asserts tree is SessionTree {
  checkArgument(tree instanceof SessionTree, tree, call, "a tree, such as createTree makes");
}
