import { checkArgument, checkOptionsOf, isObject } from "../session/check-arguments.ts";
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
import {
  notANode,
  openRunError,
  SessionConflictError,
  SessionError,
  SessionNotFoundError,
  show,
  UnknownEntryError,
} from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { hasBegun } from "../session/log/run-fold.ts";
import type { SessionHeader } from "../session/log/header.ts";
import type { Settings } from "../session/log/settings.ts";
import type { Payer } from "../session/payer.ts";
import { type CompactionView, inspectCompaction } from "../session/context/compaction.ts";
import { checkMessageKeys } from "../session/log/entry-check.ts";
import type { Content, Message } from "../session/message.ts";
import type { HookRunner } from "../session/context/hooks.ts";
import type { Session } from "../session/value/session.ts";
import type { AppendOptions, AppendResult, Guard, SessionStore } from "../session/store.ts";
import { labelsOn, type TreeNode } from "../session/log/entry-tree.ts";
import type { Usage } from "../session/usage.ts";
import type { Damage } from "../stores/jsonl/index.ts";
import { omit, type OmitOptions, previewEdit, replace, undoEdit } from "./edit-context.ts";
import {
  FILE_KEYS,
  type FileOptions,
  hookRunner,
  STORE_TREE_KEYS,
  type StoreTreeOptions,
  TREE_KEYS,
  type TreeOptions,
} from "./file-options.ts";
import { continueRecent, createFile, createInMemory, derivedHeader, forkFile, openFile } from "./file-trees.ts";
import type { EditPreview } from "../session/context/edits.ts";
import { compactionInForce, isOnPath, readBranch, readContext, readContextEntries } from "./path-reader.ts";
import { readLatestLeaf } from "./read-siblings.ts";
import { readSession, readTranscript, withOrigin } from "./read-session.ts";
import { type OpenedSession, type SessionRoom, StoreBacking, type TreeBacking } from "./tree-backing.ts";
import { TreeView } from "./tree-view.ts";

const TRIES_MAX = 20;

type SummaryFields = Omit<EntryOf<"branch_summary">, keyof EntryStamp | "type" | "fromId">;

/**
 * One session opened for reading, navigating and appending.
 *
 * - Every `append…` and `set…` resolves to the entry when it is durable.
 * - Nothing is ever removed: moving the leaf, labels, pruning and undoing are entries too.
 * - `leafId` and `version` are as of this tree's last call. Every reading method reads the head from the store first.
 */
export class SessionTree implements AsyncDisposable {
  readonly #backing: TreeBacking;
  #payer: Payer | null = null;
  #head: SessionHead;
  #view: TreeView | null = null;
  readonly #hooks: HookRunner;

  private constructor({ backing, head }: OpenedSession, options: TreeOptions) {
    this.#backing = backing;
    this.#head = head;
    this.#hooks = hookRunner(options);
  }

  /** Creates a session of a project. Its file is written when the session contains what `persistFrom` says. */
  static async create(cwd: string, options: FileOptions = {}): Promise<SessionTree> {
    checkOptionsOf(options, FILE_KEYS, "SessionTree.create");
    return new SessionTree(await createFile(cwd, options), options);
  }

  /** Opens the session in a file. */
  static async open(path: string, options: FileOptions = {}): Promise<SessionTree> {
    checkOptionsOf(options, FILE_KEYS, "SessionTree.open");
    return new SessionTree(await openFile(path, options), options);
  }

  /** Opens the project's session with the latest message, or creates one. */
  static async continueRecent(cwd: string, options: FileOptions = {}): Promise<SessionTree> {
    checkOptionsOf(options, FILE_KEYS, "SessionTree.continueRecent");
    return new SessionTree(await continueRecent(cwd, options), options);
  }

  /** Creates a session in memory. */
  static async inMemory(cwd?: string, options: TreeOptions = {}): Promise<SessionTree> {
    checkOptionsOf(options, TREE_KEYS, "SessionTree.inMemory");
    return new SessionTree(await createInMemory(cwd), options);
  }

  /** Copies a file's session with all its branches, as a new session of another project. */
  static async forkFrom(sourcePath: string, targetCwd: string, options: FileOptions = {}): Promise<SessionTree> {
    checkOptionsOf(options, FILE_KEYS, "SessionTree.forkFrom");
    const hooks = hookRunner(options);
    const source = { sessionId: sourcePath, entryId: null };
    await hooks.before("beforeFork", source);
    const tree = new SessionTree(await forkFile(sourcePath, targetCwd, options), options);
    await hooks.after("fork", { ...source, newSessionId: tree.id });
    return tree;
  }

  /** Opens a session of any store. Closing the tree leaves the store open. */
  static async on(store: SessionStore, sessionId: string, options: StoreTreeOptions = {}): Promise<SessionTree> {
    checkOptionsOf(options, STORE_TREE_KEYS, "SessionTree.on");
    const head = options.head ?? (await store.head(sessionId));
    if (head === null || head.header.id !== sessionId) throw new SessionNotFoundError(sessionId);
    const tree = new SessionTree({ backing: new StoreBacking(store, options, head.version), head }, options);
    tree.#payer = options.payerIn?.(head) ?? null;
    return tree;
  }

  /** The payer of requests to models about the session; null if there is none. For the functions of this package that ask models. */
  get payer(): Payer | null {
    return this.#payer;
  }

  /** The session's id. */
  get id(): string {
    return this.#head.header.id;
  }

  /** The session's first record. */
  get header(): SessionHeader {
    return this.#head.header;
  }

  /** The path of the session's file, even if it is not written yet; null for a session without a file. */
  get path(): string | null {
    return this.#backing.path;
  }

  /** The id of the entry that will be the parent of the next node; null before the root. */
  get leafId(): string | null {
    return this.#head.leafId;
  }

  /** How many entries the log has. */
  get version(): number {
    return this.#head.version;
  }

  /** The session's head as of this tree's last call. */
  get head(): SessionHead {
    return this.#head;
  }

  /** The parts of a salvaged file that could not be read. */
  get damage(): readonly Damage[] {
    return this.#backing.damage;
  }

  /** Whether the session is stored durably, not only in memory. */
  get persisted(): boolean {
    return this.#backing.persisted;
  }

  /** Appends one entry of any type. */
  async append(draft: EntryDraft, options?: AppendOptions): Promise<Entry> {
    const { entries } = await this.appendAll([draft], options);
    return entries[0] as Entry;
  }

  /** How many more turns the session may have, and its limit, as of the last append; null without a limit. */
  get room(): SessionRoom | null {
    return this.#backing.roomIn(this.#head);
  }

  /** Appends several entries atomically. */
  async appendAll(drafts: readonly EntryDraft[], options?: AppendOptions): Promise<AppendResult> {
    const result = await this.#backing.append(this.id, drafts, options);
    if (result.head.version >= this.#head.version) this.#head = result.head;
    return result;
  }

  /** Appends one turn: a message of a user, a model or a tool. */
  async appendMessage(message: Message, options: { readonly id?: string } = {}): Promise<Entry> {
    checkMessageKeys(message, "appendMessage");
    checkOptionsOf(options, { id: true }, "appendMessage");
    return this.append({ type: "message", message, ...options });
  }

  /** Sets the model of the next turns on this branch. */
  appendModelChange(provider: string, modelId: string): Promise<Entry> {
    return this.append({ type: "model_change", provider, modelId });
  }

  /** Sets the thinking level of the next turns on this branch. */
  appendThinkingLevelChange(thinkingLevel: ThinkingLevel): Promise<Entry> {
    return this.append({ type: "thinking_level_change", thinkingLevel });
  }

  /**
   * Replaces the entries before `firstKeptEntryId` with a summary, in the context only.
   *
   * @throws {SessionError} `UNKNOWN_ENTRY` if there is no such entry, `INVALID_ENTRY` if it is not on the path to the leaf.
   */
  async appendCompaction(init: Omit<EntryOf<"compaction">, keyof EntryStamp | "type">): Promise<Entry> {
    checkArgument(isObject(init), init, "appendCompaction", "an object with a summary and firstKeptEntryId");
    return this.appendIf({ ...init, type: "compaction" }, async () => {
      const { leafId } = await this.refresh();
      await checkFirstKept(this, init.firstKeptEntryId, leafId);
    });
  }

  /** Stores your own data on the path. It is never sent to a model. */
  appendCustom(customType: string, data?: JsonValue): Promise<Entry> {
    return this.append({ type: "custom", customType, ...(data === undefined ? {} : { data }) });
  }

  /** Adds your own message to the context of the model. It is shown to people if `display` is true. */
  appendCustomMessage(init: {
    customType: string;
    content: Content;
    display: boolean;
    details?: JsonValue;
  }): Promise<Entry> {
    return this.append({ ...init, type: "custom_message" });
  }

  /** Sets the label of any entry; null removes it. */
  setLabel(targetId: string, label: string | null): Promise<Entry> {
    return this.append({ type: "label", targetId, label });
  }

  /** Sets the session's name; an empty text removes it. */
  setName(name: string): Promise<Entry> {
    return this.append({ type: "session_info", name });
  }

  /** Sets and removes variables for the next turns on this branch. */
  setVariables(set: Readonly<Record<string, JsonValue>>, unset: readonly string[] = []): Promise<Entry> {
    return this.append({ type: "variables", set, unset });
  }

  /** Sets the system prompt of the next turns on this branch. */
  setSettings(settings: Partial<Omit<Settings, "variables">>): Promise<Entry> {
    return this.append({ type: "variables", set: {}, unset: [], ...settings });
  }

  /** Moves the leaf to an entry; null moves it before the root, so that the next node is a new root. */
  async branch(entryId: string | null): Promise<void> {
    await this.#move(entryId, null);
  }

  /**
   * Selects the branch of an entry, such as another answer to the same turn: moves the leaf to the latest leaf below it.
   * Throws `SESSION_BUSY` while a run of the session is open.
   */
  selectBranch(entryId: string): Promise<void> {
    return selectBranchOf(this, entryId);
  }

  /** Moves the leaf, and appends there a summary of the abandoned branch with the cost of writing the summary. */
  async branchWithSummary(
    entryId: string | null,
    summary: string,
    details?: JsonValue,
    spent: { readonly usage?: Usage; readonly cost?: number } = {},
  ): Promise<Entry> {
    const [, entry] = await this.#move(entryId, { summary, ...(details === undefined ? {} : { details }), ...spent });
    return entry as Entry;
  }

  /** Creates a session with only the path to an entry, its labels, and a link to this session. This tree is not changed. */
  async createBranchedSession(entryId: string, options: FileOptions = {}): Promise<SessionTree> {
    checkOptionsOf(options, FILE_KEYS, "createBranchedSession");
    checkArgument(isObject(options), options, "createBranchedSession", "an object of options");
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

  /** Prunes a side branch. Throws `ACTIVE_PATH` if the leaf is on it, or `SESSION_BUSY` if an open run is. */
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
   * Appends an entry only if the session is unchanged since `check` has run. If another append came in between, `check` runs
   * again. `check` throws to refuse the append.
   */
  async appendIf(draft: EntryDraft, check: () => Promise<void>, guard: Guard = {}): Promise<Entry> {
    checkArgument(typeof check === "function", check, "appendIf", "a check, which is a function");
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

  /** Undoes a compaction (default: the one in force), so that the context contains the entries before it again. */
  undoCompaction(entryId?: string): Promise<void> {
    return undoCompactionOf(this, entryId);
  }

  /** Returns the entries that a compaction dropped from the context and those that it kept. Reads the whole path to it. */
  inspectCompaction(entryId: string): Promise<CompactionView> {
    return inspectCompactionOf(this, entryId);
  }

  /**
   * Leaves an entry out of the context from here on; an answer with calls goes together with its results. The log keeps
   * what was said, and `undoEdit` brings it back. It applies to this path only.
   *
   * @throws {SessionError} `RUN_OPEN` for input that an open run has not answered, `INVALID_ENTRY` for an entry that
   * models do not see or that is not on the path to the leaf.
   */
  omit(entryId: string, options?: OmitOptions): Promise<EntryOf<"context_edit">> {
    return omit(this, entryId, options);
  }

  /**
   * Puts a message in the place of an entry in the context from here on. It has the role of the entry, and of an answer it keeps
   * calls or leaves them out; its usage, cost and provider data are dropped.
   *
   * @throws {SessionError} as `omit` does.
   */
  replace(entryId: string, message: Message, options?: OmitOptions): Promise<EntryOf<"context_edit">> {
    return replace(this, entryId, message, options);
  }

  /** Undoes an edit of the context, so that models see the original again. */
  undoEdit(editId: string): Promise<EntryOf<"context_edit">> {
    return undoEdit(this, editId);
  }

  /**
   * Computes what an edit would change: `omit` of the entry, `replace` if there is a message, or `undoEdit` if the entry is an
   * edit. Reads the entries of the context, and appends nothing.
   */
  previewEdit(entryId: string, message?: Message | null): Promise<EditPreview> {
    return previewEdit(this, entryId, message);
  }

  /** All entries in log order, including facts. */
  async entries(): Promise<Entry[]> {
    return (await this.#updatedView()).entries();
  }

  /** The entry with an id, or null. */
  getEntry(id: string): Promise<Entry | null> {
    return this.#backing.store.getEntry(this.id, id);
  }

  /** The direct children of a node; the children of null are the roots. */
  async getChildren(id: string | null): Promise<Entry[]> {
    return (await this.#updatedView()).children(id);
  }

  /** The entry that will be the parent of the next node. */
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

  /** The current label of every labelled entry, by entry id. */
  async getLabels(): Promise<ReadonlyMap<string, string>> {
    return (await this.#updatedView()).labels();
  }

  /** The session's name, or null. */
  async getName(): Promise<string | null> {
    await this.refresh();
    return this.#head.name;
  }

  /** Builds the context at the leaf or at another node: the content of the next request to a model. */
  async buildContext(leafId?: string | null): Promise<ModelContext> {
    await this.refresh();
    return readContext(this.#backing.store, this.#head, leafId);
  }

  /** The entries of the context at the leaf, root first, including the compaction in force. */
  async contextEntries(): Promise<Entry[]> {
    await this.refresh();
    return this.leafId === null ? [] : readContextEntries(this.#backing.store, this.#head, this.leafId);
  }

  /** Makes a session value from the context at the leaf. Reads only the entries of the context. */
  async toSession(): Promise<Session> {
    const head = await this.refresh();
    const { transcript } = await readTranscript(this.store, head);
    return readSession(this.store, head, withOrigin(transcript, this.store, head));
  }

  /** The store of the session. It is a memory store until the session's file is written. */
  get store(): SessionStore {
    return this.#backing.store;
  }

  /** The hook handlers of this tree. */
  get hooks(): HookRunner {
    return this.#hooks;
  }

  /** Reads the head from the store, with the appends of others. */
  async refresh(): Promise<SessionHead> {
    const head = await this.#backing.store.head(this.id);
    if (head === null) throw new SessionNotFoundError(this.id);
    this.#head = head;
    return head;
  }

  /** Writes the session's file now if the session is only in memory. */
  async flush(): Promise<void> {
    this.#head = (await this.#backing.flush(this.id)) ?? this.#head;
  }

  /** Closes the session's file. A session whose file was not written yet is discarded. */
  async close(): Promise<void> {
    await this.#backing.close();
  }

  /** Closes the tree. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Moves the leaf. The summary of a `beforeTree` handler overrides the caller's. */
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

/** Undoes a compaction; without an id, the one in force. */
async function undoCompactionOf(tree: SessionTree, entryId: string | undefined): Promise<void> {
  const head = await tree.refresh();
  const targetId = entryId ?? (await compactionInForce(tree.store, head, head.path));
  if (targetId === null)
    throw new SessionError("UNKNOWN_ENTRY", `Session ${tree.id} has no compaction to undo on this branch.`);
  await tree.append({ type: "compaction_undone", targetId });
}

/** Returns the entries that a compaction dropped from the context, and those that it kept. */
async function inspectCompactionOf(tree: SessionTree, entryId: string): Promise<CompactionView> {
  const view = inspectCompaction(await tree.getBranch(entryId), entryId);
  if (view === null) throw new SessionError("INVALID_ENTRY", `Entry ${entryId} is not a compaction.`);
  return view;
}

/** Moves the leaf to the latest leaf below an entry, unless a run is open. */
async function selectBranchOf(tree: SessionTree, entryId: string): Promise<void> {
  const [open] = (await tree.refresh()).openRuns;
  if (open !== undefined)
    throw new SessionError(
      "SESSION_BUSY",
      `Run ${open.runId} of session ${tree.id} is open; let it end or cancel it before you select another branch.`,
    );
  const entry = await tree.getEntry(entryId);
  if (entry === null) throw new UnknownEntryError(tree.id, entryId);
  if (!isNode(entry)) throw notANode(tree.id, entryId);
  await tree.branch(await readLatestLeaf(tree.store, tree.id, entry));
}

/** Prunes a branch, unless the leaf or a started run is on it. */
async function pruneBranchOf(tree: SessionTree, entryId: string): Promise<void> {
  const entry = await tree.getEntry(entryId);
  if (entry !== null && !isNode(entry)) throw notANode(tree.id, entryId);
  const draft = { type: "prune", targetId: entryId } as const;
  const check = async (): Promise<void> => {
    if (await tree.isActive(entryId))
      throw new SessionError("ACTIVE_PATH", `Entry ${entryId} is on the active path; branch elsewhere first.`);
    const runId = await runOnBranch(tree, entry as Entry);
    if (runId !== null) throw openRunError(tree.id, runId, draft);
  };
  await tree.appendIf(draft, check, { holds: true });
}

/**
 * Checks from where a compaction below `onto` keeps the context.
 *
 * @throws {SessionError} `UNKNOWN_ENTRY` if there is no such entry, `INVALID_ENTRY` if it is not on that path.
 */
export async function checkFirstKept(tree: SessionTree, firstKeptEntryId: string, onto: string | null): Promise<void> {
  const entry = await tree.getEntry(firstKeptEntryId);
  if (entry === null) throw new UnknownEntryError(tree.id, firstKeptEntryId);
  if (await isOnPath(tree.store, tree.id, entry, onto)) return;
  throw new SessionError(
    "INVALID_ENTRY",
    `Entry ${show(firstKeptEntryId)} is not on the path of the compaction in session ${tree.id}; keep the context from an entry of that path.`,
  );
}

/** A started run that has or may add rows at an entry or below it; null if there is none. */
async function runOnBranch({ store, id, head }: SessionTree, entry: Entry): Promise<string | null> {
  const begun = new Set(head.openRuns.filter(hasBegun).map(({ runId }) => runId));
  if (begun.size === 0) return null;
  for await (const fact of store.read(id, { reverse: true })) {
    if (fact.type !== "run" || !begun.delete(fact.runId)) continue;
    // The holder appends "run started" at the run's position, and all later rows of the run are below that entry.
    const start = fact.parentId === null ? null : await store.getEntry(id, fact.parentId);
    if (start === null || (await isOnPath(store, id, entry, start.id)) || (await isOnPath(store, id, start, entry.id)))
      return fact.runId;
    if (begun.size === 0) return null;
  }
  return null;
}

/** @throws {SessionError} `INVALID_OPTION` with the name of the call, unless the value is a tree. */
export function checkIsTree(tree: unknown, call: string): asserts tree is SessionTree {
  checkArgument(tree instanceof SessionTree, tree, call, "a tree, such as createTree makes");
}
