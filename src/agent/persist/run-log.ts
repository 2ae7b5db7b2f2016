import {
  LeaseLostError,
  SessionBusyError,
  SessionConflictError,
  SessionError,
  SessionNotFoundError,
} from "../../session/errors.ts";
import { checkedMessage } from "../../session/checked-message.ts";
import { messagesOf } from "../../session/context/context.ts";
import { type Entry, type EntryDraft, type EntryOf, type FactBody, isNode } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { rootIdOf, type SandboxPlacement } from "../../session/log/header.ts";
import type { RecordedEvent } from "../../session/log/run-event.ts";
import { isReleased, newRun, type RunState, stepRun } from "../../session/log/run-fold.ts";
import { isMerged } from "../../session/log/merged-turns.ts";
import type { AssistantMessage, Message } from "../../session/message.ts";
import type { AppendOptions, SessionStore } from "../../session/store.ts";
import { Session } from "../../session/value/session.ts";
import { type Row, rowOf, Transcript, type TranscriptOrigin } from "../../session/value/transcript.ts";
import { readContextEntries } from "../../tree/path-reader.ts";
import { readTranscript } from "../../tree/read-session.ts";
import type { SessionRoom } from "../../tree/tree-backing.ts";
import { type BlobPlace, noteBlobPlace } from "../../stores/blobs/message-blobs.ts";
import { isFromModel } from "../context/cache-warmth.ts";
import { promptCacheKey } from "../model/cache-key.ts";
import type { Model } from "../model/model.ts";
import type { EventLog } from "../event-log.ts";
import { withThrown } from "../run-error.ts";
import type { LeaseHold } from "./lease-hold.ts";
import type { LogAccess } from "./log-access.ts";
import { isAddressedTo, type LogFollower, type RunMessage } from "./log-follower.ts";
import type { SentSetup } from "./run-setup.ts";

/** How a run ended. */
export type RunOutcome = Pick<
  Extract<FactBody, { type: "run" }>,
  "error" | "usage" | "truncated" | "output" | "sandbox"
> & { readonly phase: "finished" | "failed" | "cancelled" };

/** The fields of the entry with which a run parks. */
export type ParkedFact = Omit<Extract<FactBody, { type: "run_parked" }>, "type" | "runId">;

/** Options for starting the log of a run. */
export interface RunLogInit {
  readonly runId: string;
  /** The session that the run produces. */
  readonly output: Session;
  readonly events: EventLog;
  readonly signal: AbortSignal;
  /** Whether the run is stored. */
  readonly kept: boolean;
  /** The handle to record for the sandbox instead of its own id. */
  readonly sandboxHandleId?: string | undefined;
}

/** How a run starts in its log. */
export interface RunBeginning {
  readonly access: LogAccess;
  /** The folded state of the run before this claim, and the position up to which the log was read. */
  readonly state: RunState;
  readonly from: number;
  /** The node that the first entry follows, and whether the leaf is there. */
  readonly lastId: string | null;
  readonly atLeaf: boolean;
  readonly drafts: readonly EntryDraft[];
  /** How the drafts are appended; left out if they are stored already. */
  readonly append?: AppendOptions;
  /** The session to work on: the stored rows, then the input. */
  readonly user: Session;
  /** The setup of the requests; null for a run that records no setup. */
  readonly setup?: SentSetup | null;
  /** Called once the start is recorded. If it returns false, the run releases its session and is due again. */
  readonly mayBegin?: (() => Promise<boolean>) | undefined;
}

/**
 * The log of a run. Entries are durable before they take effect. Each entry, appended by this run or by others, passes
 * through `stepRun` once, in log order; this yields the recorded events and the run's usage.
 *
 * Only one append is in progress at a time. Drafts that arrive in the meantime, or before the log is open, are batched
 * into the next append, so that many tools that start together cost one append. Input of others precedes the run's next
 * row. If the leaf is moved to another branch, the run continues below its own last entry.
 */
export class RunLog {
  readonly runId: string;
  readonly output: Session;
  readonly events: EventLog;
  readonly signal: AbortSignal;
  readonly kept: boolean;
  /** Called with each row that the run adds, and with those of others that precede it. */
  onRow: (row: Row) => void = () => {};
  readonly #handleId: string | undefined;
  #access: LogAccess | null = null;
  #setup: SentSetup | null = null;
  #state: RunState;
  /** The latest event that ended or parked the run, and the position of its entry; null until then, and once emitted. */
  #last: LastEvent | null = null;
  #follower: LogFollower | null = null;
  /** The follower through which others reach the run. */
  #messages: LogFollower | null = null;
  #unsubscribe: () => void = () => {};
  #unheard: RunMessage[] = [];
  #onMessage: (message: RunMessage) => void = (message) => void this.#unheard.push(message);
  /** Entries in log order that were not folded yet: the run's own wait for their append to finish. */
  readonly #pending: Entry[] = [];
  /** The position up to which the run's appends have finished, and where its own rows start. */
  #answered = -1;
  #begun = Number.POSITIVE_INFINITY;
  #position = -1;
  /** Nodes that others added since the run's last one, by id. */
  readonly #others = new Map<string, Entry>();
  #lastId: string | null = null;
  #atLeaf = true;
  #moved = false;
  #announced = false;
  #over = false;
  #left = false;
  /** Whether the follower has seen that the run parked; the append itself may not have finished yet. */
  #parkedSeen = false;
  #waiting: Waiting[] = [];
  #writing: Promise<unknown> | null = null;
  #failure: { readonly error: unknown } | null = null;
  #notedHandleId: string | null = null;
  /** Whether the context was edited since it was read. */
  #edited = false;
  #cacheKey: string | undefined;
  /** The users whose words a message repeats. */
  readonly #authors = new WeakMap<Message, string>();

  constructor({ runId, output, events, signal, kept, sandboxHandleId }: RunLogInit) {
    this.runId = runId;
    this.output = output;
    this.events = events;
    this.signal = signal;
    this.kept = kept;
    this.#handleId = sandboxHandleId;
    this.#state = newRun(runId);
    Session.onSandbox(output, () => this.#noteSandbox());
  }

  /** The stored session that has the blobs of the run's messages; null if the run is not kept. */
  get blobPlace(): BlobPlace | null {
    const { store = null, sessionId = null } = this.#access ?? {};
    return store === null || sessionId === null ? null : { store, sessionId };
  }

  /** The folded state of the run. */
  get state(): RunState {
    return this.#state;
  }

  /** The latest event that ended or parked the run; null if there is none. The code that ends the run emits it. */
  get last(): RecordedEvent | null {
    return this.#last?.event ?? null;
  }

  /** Emits the last event, if it was not emitted yet; of a run that failed, with what was thrown. */
  emitLast(thrown?: unknown): void {
    if (this.#last === null) return;
    const { event, position } = this.#last;
    this.#last = null;
    const isThrown = event.type === "run-failed" && thrown !== undefined;
    const emitted = isThrown ? { ...event, error: withThrown(event.error, thrown) } : event;
    this.events.add(emitted as Parameters<EventLog["add"]>[0], "recorded", position);
  }

  /** Whether a lease keeps other processes from the run until it ends. */
  get hasLease(): boolean {
    return (this.#access?.lease ?? null) !== null;
  }

  /** The stored session of the run; null if it is not stored, or has not started. */
  get sessionId(): string | null {
    return this.#access?.sessionId ?? null;
  }

  /**
   * The prompt cache key of the run's session; undefined if the run is not stored, because no later request could use
   * it.
   */
  get cacheKey(): string | undefined {
    const access = this.#access;
    if (access === null || access.sessionId === null) return undefined;
    this.#cacheKey ??= promptCacheKey(rootIdOf(access.header), access.header.userId);
    return this.#cacheKey;
  }

  /** The setup of the run's requests; null before the start, or if it records no setup. */
  get setup(): SentSetup | null {
    return this.#setup;
  }

  /** The position of the last entry that was folded; -1 before the first. */
  get position(): number {
    return this.#position;
  }

  get isOpen(): boolean {
    return this.#access !== null;
  }

  get lease(): LeaseHold | null {
    return this.#access?.lease ?? null;
  }

  /** How many more turns the session can take; null if there is no limit. */
  get room(): SessionRoom | null {
    return this.#access?.room ?? null;
  }

  /** Whether the run can release its session while it waits for answers. */
  get parks(): boolean {
    return this.#access?.parks === true;
  }

  /** Whether anyone has subscribed to the events of the run or of an enclosing run. */
  get isFollowed(): boolean {
    return this.#access?.isFollowed() ?? this.events.subscribed;
  }

  /** Appends the start of the run, which holds its session from then on. `ready` is called before the first event. */
  async begin(beginning: RunBeginning, ready: (user: Session) => void): Promise<void> {
    const { access, state, from, lastId, atLeaf, drafts, append, user } = beginning;
    this.#state = state;
    this.#setup = beginning.setup ?? null;
    this.#lastId = lastId;
    this.#atLeaf = atLeaf;
    this.#follower = access.follow(from, (entry) => this.#take(entry));
    this.#messages = this.#follower ?? access.messages?.((message) => this.#onMessage(message)) ?? null;
    let stored: Awaited<ReturnType<LogAccess["append"]>> | null = null;
    if (append !== undefined) {
      stored = await access.append(drafts, { ...append, run: this.runId });
      if (beginning.mayBegin !== undefined && !(await beginning.mayBegin())) throw await this.#releaseUnstarted(access);
    }
    this.#access = access;
    ready(user);
    const { usage, cost } = state;
    const recovered = usage === null && cost === null ? {} : { recovered: { sessionId: user.id, usage, cost } };
    Session.grow(this.output, { transcript: user.transcript, ...this.#spent(), ...recovered });
    await (stored === null ? this.#follower?.poll() : this.#settle(stored, null));
    this.#begun = this.#position + 1;
    this.#edited = [...this.#others.values()].some(isContextEdit);
    this.#others.clear();
    this.#answered = Math.max(this.#answered, this.#position);
    this.#drain();
    this.#writeWaiting();
  }

  /**
   * Records that the run waits for no answer, so that it is due again and this claim does not count as one without
   * progress.
   */
  async #releaseUnstarted(access: LogAccess): Promise<SessionBusyError> {
    const { runId } = this;
    await access.append([{ type: "run_parked", runId, questions: [] }], { guard: access.guard, run: runId });
    await access.release(null);
    return new SessionBusyError(access.header.id, "as many runs as its user may have at once");
  }

  /** From here on, calls `onMessage` once, in order, for each entry that others address to the run. */
  listen(onMessage: (message: RunMessage) => void): void {
    this.#onMessage = onMessage;
    for (const message of this.#unheard.splice(0)) onMessage(message);
    this.#unsubscribe = this.#messages?.subscribe() ?? (() => {});
  }

  /** Reads new entries of others now. */
  async poll(): Promise<void> {
    await this.#messages?.poll();
  }

  /**
   * Emits the start of a run that asks its model before it opens its log, so that a refused answer leaves nothing in
   * the store.
   */
  announce(): void {
    this.#announced = true;
    this.events.add({ type: "run-started" });
  }

  /** Rejects everything that waits for the log to open, if it never will. */
  giveUp(error: unknown): void {
    if (this.#access !== null) return;
    this.#failure ??= { error };
    this.#writeWaiting();
  }

  /** Records a user as the author of a message that the run adds later, so that erasing the user finds it. */
  setAuthor(message: Message, userId: string | undefined): void {
    if (userId !== undefined) this.#authors.set(message, userId);
  }

  /** Adds messages, with facts that must be recorded in the same append. */
  add(given: readonly Message[], facts: readonly EntryDraft[] = []): Promise<void> {
    // A store need not look up an id that it assigns itself; the lookup would take nearly as long as the write.
    const setupId = this.#setup?.id ?? null;
    const drafts = given.map((each): EntryDraft => {
      const message = checkedMessage(each);
      if (message.role === "assistant" && setupId !== null) return { type: "message", message, setup: setupId };
      const by = this.#authors.get(each);
      return by === undefined ? { type: "message", message } : { type: "message", message, by };
    });
    return this.#write(facts.length === 0 ? drafts : [...drafts, ...facts]);
  }

  /** Appends facts; with `alone`, in a separate append, so that a refusal affects only them. */
  async note(facts: readonly EntryDraft[], { alone = false }: { readonly alone?: boolean } = {}): Promise<void> {
    if (facts.length > 0) await this.#write(facts, alone);
  }

  /**
   * Records that the run waits for answers, unless others appended something in the meantime. `parked` is called before
   * anything else is written.
   */
  async park(factNow: () => ParkedFact | null, parked: () => void): Promise<void> {
    await this.idle();
    // Entries that were appended in the meantime may answer a question, so the open questions are read only now.
    const fact = factNow();
    if (fact === null) return;
    const parking = this.#appendIfCurrent({ type: "run_parked", runId: this.runId, ...fact }).then((isRecorded) => {
      if (isRecorded || this.#isParked) parked();
    });
    const settled = (): void => this.#next();
    this.#writing = parking.then(settled, settled);
    return parking;
  }

  /**
   * Records how the run ended and releases the session. If the run would count as finished but others appended input in
   * the meantime, it passes on that input, writes nothing and returns false.
   */
  async end(outcome: RunOutcome): Promise<boolean> {
    const access = this.#opened();
    // From here on nothing else is appended, unless the run continues after all.
    this.#over = true;
    const draft: EntryDraft = { type: "run", runId: this.runId, ...outcome, ...this.openPlace };
    try {
      // A cancel ends a run that has parked, so that no other end is recorded.
      if (outcome.phase !== "finished") await (this.#state.end === null ? this.#append([draft]) : null);
      else if (!(await this.#appendIfCurrent(draft))) {
        this.#over = false;
        return false;
      }
      this.leave();
      await access.release(outcome.phase);
      return true;
    } catch (error) {
      this.leave();
      await access.release(null).catch(() => {});
      throw error;
    }
  }

  /** Releases the session as after a crash: the run can be recovered. */
  async abandon(): Promise<void> {
    if (this.#over || this.#access === null) return;
    this.#over = true;
    this.leave();
    await this.#access.release(null);
  }

  /** Folds no more entries: what is appended from here on belongs to the next claim. */
  leave(): void {
    this.#left = true;
    this.#unsubscribe();
  }

  /** Records the sandbox of the session before a tool acts in it, so that a recovery can reattach to it. */
  async #noteSandbox(): Promise<void> {
    const { sandbox } = this.openPlace;
    const isNoted = sandbox === undefined || this.#notedHandleId === sandbox.handleId;
    if (!this.kept || this.#access === null || this.#over || isNoted) return;
    this.#notedHandleId = sandbox.handleId;
    await this.note([{ type: "run", runId: this.runId, phase: "started", sandbox }]);
  }

  /** Where the tools act, once the sandbox is open. */
  get openPlace(): { readonly sandbox?: SandboxPlacement } {
    const place = this.output.sandbox === null ? null : this.output.sandboxPlacement;
    if (place === null) return {};
    return { sandbox: this.#handleId === undefined ? place : { ...place, handleId: this.#handleId } };
  }

  /**
   * Attaches to the transcript the summary that replaces its first rows from here on, so that the next run need not
   * search for it.
   */
  compacted({ id, summary, keptRows }: { id: string; summary: string; keptRows: number }): void {
    const { transcript } = this.output;
    const compaction = { id, summary, from: transcript.length - keptRows };
    Session.grow(this.output, { transcript: Transcript.withCompaction(transcript, compaction) });
  }

  /** Reads the transcript again, as models see it, if it was edited since the last call; otherwise returns null. */
  takeEdits(): Promise<Transcript> | null {
    const access = this.#opened();
    if (access.editedRows !== undefined) {
      // The log has rows that this run must not see.
      const rows = access.editedRows();
      return rows === null ? null : Promise.resolve(this.#growTo(Transcript.of(rows)));
    }
    if (!this.#edited) return null;
    this.#edited = false;
    const { store, sessionId } = access;
    return readHead(store as SessionStore, sessionId as string)
      .then((head) => readTranscript(store as SessionStore, head, this.#lastId))
      .then(({ transcript }) => this.#growTo(transcript));
  }

  /** The ids of the entries on the run's path with an edit that was undone. */
  async restoredEntries(): Promise<ReadonlySet<string>> {
    const { store, sessionId } = this.#opened();
    if (store === null || sessionId === null || this.#lastId === null) return new Set();
    const path = await readContextEntries(store, await readHead(store, sessionId), this.#lastId);
    const edits = new Map(path.filter(isContextEdit).map((edit) => [edit.id, edit]));
    return new Set([...edits.values()].flatMap(({ undo = "" }) => edits.get(undo)?.targetId ?? []));
  }

  /**
   * Whether the run's model has answered in the session since this time, on any branch, so that its provider may have a prefix of the
   * next request in its cache. A run that is not stored cannot tell, and returns true.
   */
  async hasAnswerSince(time: number, model: Pick<Model, "provider" | "id"> | undefined): Promise<boolean> {
    const { store, sessionId } = this.#opened();
    if (store === null || sessionId === null) return true;
    // Gateways return other names of a model than the requested one; the start of a run names the requested one.
    const runs = new Set<string>();
    for await (const entry of store.read(sessionId, { reverse: true })) {
      const isSince = Date.parse(entry.timestamp) >= time;
      // Merged entries keep their times, so that later ones may stand before them.
      if (!isSince && runs.size === 0 && (isAnswer(entry) || entry.type === "run")) return false;
      if (isSince && isAnswer(entry)) {
        if (model === undefined || isFromModel(entry.message, model)) return true;
        // Before format 3, the start of a run did not name its model, and answers had no setup.
        if (entry.run !== undefined && entry.setup !== undefined) runs.add(entry.run);
      }
      if (entry.type !== "run" || entry.phase !== "started" || entry.model === undefined) continue;
      if (runs.delete(entry.runId) && entry.model === `${model?.provider}/${model?.id}`) return true;
    }
    return false;
  }

  /** When an entry was appended; null for one that is not stored. */
  async timeOf(entryId: string): Promise<string | null> {
    const { store, sessionId } = this.#opened();
    return store === null || sessionId === null
      ? null
      : ((await store.getEntry(sessionId, entryId))?.timestamp ?? null);
  }

  #growTo(transcript: Transcript): Transcript {
    Session.grow(this.output, { transcript });
    return transcript;
  }

  /** Resolves when no append is in progress; never rejects. */
  async idle(): Promise<void> {
    while (this.#writing !== null) await this.#writing.catch(() => {});
  }

  /** Attaches to the transcript where its rows are stored, so that the next run can refer to them. */
  settleOrigin(): void {
    const origin = this.origin();
    if (origin === null) return;
    Session.grow(this.output, { transcript: Transcript.withOrigin(this.output.transcript, origin) });
  }

  /** The stored position of the rows written so far; null if later sessions cannot refer to them. */
  origin(): Omit<TranscriptOrigin, "length"> | null {
    const { store = null, sessionId = null, shared = false } = this.#access ?? {};
    const entryId = this.#lastId;
    return !shared || store === null || sessionId === null || entryId === null ? null : { store, sessionId, entryId };
  }

  get #isParked(): boolean {
    const { open } = this.#state;
    return this.#parkedSeen || (open !== null && isReleased(open));
  }

  #opened(): LogAccess {
    if (this.#access !== null && !this.#over) return this.#access;
    throw new SessionError("RUN_ENDED", `Run ${this.runId} has ended and takes no more entries.`);
  }

  /**
   * Appends if the log has the version known here. False if others have appended in the meantime; their entries are
   * passed on first.
   */
  async #appendIfCurrent(draft: EntryDraft): Promise<boolean> {
    const follower = this.#follower;
    try {
      await this.#append([draft], follower === null ? {} : { expectedVersion: follower.next });
      return true;
    } catch (error) {
      if (!(error instanceof SessionConflictError)) throw error;
      await this.poll();
      // No append is in progress, so all entries of this run that were read are stored.
      this.#answered = Math.max(this.#answered, this.#pending.at(-1)?.seq ?? -1);
      this.#drain();
      return false;
    }
  }

  async #append(
    drafts: readonly EntryDraft[],
    options: AppendOptions = {},
    batch: readonly Waiting[] | null = null,
  ): Promise<void> {
    const access = this.#access as LogAccess;
    const { guard } = access;
    const stored = await access.append(drafts, { below: this.#lastId, guard, run: this.runId, ...options });
    await this.#settle(stored, batch);
  }

  /** Folds the earlier entries of others, then the run's own. */
  async #settle(
    { entries, head, version }: Awaited<ReturnType<LogAccess["append"]>>,
    batch: readonly Waiting[] | null,
  ): Promise<void> {
    const follower = this.#follower;
    if (follower === null) for (const entry of entries) this.#fold(entry);
    else {
      // An entry that is known already repeats an earlier append.
      const [first] = entries.filter(({ seq }) => seq >= follower.next || seq > this.#answered);
      this.#answered = entries.reduce((latest, { seq }) => Math.max(latest, seq), this.#answered);
      if (first !== undefined && first.seq > follower.next) await follower.poll(first.seq);
      for (const entry of entries) follower.take(entry);
      this.#drain();
    }
    for (const { resolve } of batch ?? []) resolve();
    const isAtEnd = version === undefined || version === this.#position + 1;
    // A run that started beside the leaf was never at the leaf.
    if (!isAtEnd || this.#lastId === null) return;
    const moved = this.#atLeaf && head.leafId !== this.#lastId;
    this.#atLeaf = head.leafId === this.#lastId;
    if (moved && !this.#moved) this.events.add({ type: "leaf-moved", leafId: head.leafId });
    // Emitted once: later entries stay on the run's own branch anyway.
    this.#moved ||= moved;
  }

  #take(entry: Entry): void {
    if (this.#left) return;
    // Input that arrives after the run has parked is for the next claim.
    if (entry.type === "run_parked" && entry.runId === this.runId && entry.seq >= this.#begun) this.#parkedSeen = true;
    const { header } = this.#access as LogAccess;
    const isOthers = entry.run !== this.runId;
    if (isOthers && isAddressedTo(this.runId, entry, header) && !this.#isParked) this.#onMessage(entry);
    this.#pending.push(entry);
    this.#drain();
  }

  #drain(): void {
    for (let entry = this.#pending[0]; entry !== undefined; entry = this.#pending[0]) {
      const isOwn = entry.run === this.runId && entry.seq >= this.#begun;
      if (isOwn && entry.seq > this.#answered) return;
      this.#pending.shift();
      this.#fold(entry);
    }
  }

  #fold(entry: Entry): void {
    this.#position = entry.seq;
    const isOwn = entry.run === this.runId && entry.seq >= this.#begun;
    if (entry.run === this.runId && isNode(entry)) this.#lastId = entry.id;
    else if (isNode(entry) && this.#access?.takesOthers === true) this.#others.set(entry.id, entry);
    if (isOwn && (entry.type === "message" || entry.type === "custom_message")) this.#grow(entry);
    if (isOwn && isContextEdit(entry)) this.#edited = true;
    const { state, event } = stepRun(this.#state, entry, (this.#access as LogAccess).header);
    const isSpent = state.usage !== this.#state.usage || state.cost !== this.#state.cost;
    this.#state = state;
    if (isSpent) Session.grow(this.output, this.#spent());
    if (event === null || (this.#announced && event.type === "run-started")) return;
    // A run that has parked can still be cancelled.
    if (this.#last !== null) this.emitLast();
    if (state.open === null || isReleased(state.open)) this.#last = { event, position: entry.seq };
    else this.events.add(event as Parameters<EventLog["add"]>[0], "recorded");
  }

  #grow(entry: Entry): void {
    const own = messagesOf(entry).map((message) => this.#rowOf(entry.id, message));
    const rows = [...this.#othersAbove(entry), ...own];
    Session.grow(this.output, { transcript: this.output.transcript.appendAll(rows) });
    for (const row of rows) this.onRow(row);
  }

  /** The rows of others between the run's last row and this one. */
  #othersAbove({ parentId }: Entry): readonly Row[] {
    if (this.#others.size === 0) return [];
    const above: Entry[] = [];
    for (
      let entry = this.#others.get(parentId ?? "");
      entry !== undefined;
      entry = this.#others.get(entry.parentId ?? "")
    )
      above.unshift(entry);
    this.#edited ||= above.some(isContextEdit);
    this.#others.clear();
    return above.flatMap((entry) => messagesOf(entry).map((message) => this.#rowOf(entry.id, message)));
  }

  #rowOf(id: string, message: Message): Row {
    const row = rowOf({ id, message });
    const place = this.blobPlace;
    if (place !== null) noteBlobPlace(row.message, place);
    return row;
  }

  #spent(): Pick<Parameters<typeof Session.grow>[1], "usage" | "cost"> {
    const { usage, cost } = this.#state;
    return { ...(usage === null ? {} : { usage }), ...(cost === null ? {} : { cost }) };
  }

  /** Resolves once the entries are durable and folded. After one failure, all later calls fail with the same error. */
  #write(drafts: readonly EntryDraft[], alone = false, batch: readonly Waiting[] | null = null): Promise<void> {
    // Usually no append is in progress, and then nothing has to wait.
    if (this.#writing !== null || this.#access === null || this.#failure !== null) return this.#wait(drafts, alone);
    const isRefused = this.#over || (this.#isParked && drafts.some(({ type }) => type !== "approval"));
    const appending = isRefused
      ? Promise.reject(new SessionError("RUN_ENDED", `Run ${this.runId} has ended and takes no more entries.`))
      : this.#append(drafts, {}, batch);
    const writing = appending.then(this.#written, this.#failed);
    this.#writing = writing;
    return writing;
  }

  #wait(drafts: readonly EntryDraft[], alone: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ drafts, alone, resolve, reject });
      if (this.#writing === null) this.#writeWaiting();
    });
  }

  readonly #written = (): void => this.#next();

  readonly #failed = (error: unknown): never => {
    if (error instanceof LeaseLostError) this.lease?.lose();
    // Later entries would follow one that does not exist. The exception is an answer that someone else gave first.
    if (!(error instanceof SessionError && error.code === "ENTRY_EXISTS")) this.#failure ??= { error };
    this.#next();
    throw error;
  };

  #next(): void {
    this.#writing = null;
    this.#writeWaiting();
  }

  #writeWaiting(): void {
    // An append that began while the run was starting is finished first.
    if (this.#writing !== null || this.#waiting.length === 0) return;
    if (this.#access === null && this.#failure === null) return;
    if (this.#failure !== null) {
      for (const { reject } of this.#waiting.splice(0)) reject(this.#failure.error);
      return;
    }
    const together = this.#waiting.findIndex(({ alone }) => alone);
    const batch = this.#waiting.splice(0, together < 0 ? this.#waiting.length : Math.max(together, 1));
    const drafts = batch.flatMap((waiting) => waiting.drafts);
    this.#write(drafts, false, batch).catch((error) => batch.forEach(({ reject }) => void reject(error)));
  }
}

/** Whether an entry is an answer that this session asked for; merged ones were asked for elsewhere. */
function isAnswer(entry: Entry): entry is EntryOf<"message"> & { readonly message: AssistantMessage } {
  return entry.type === "message" && entry.message.role === "assistant" && !isMerged(entry.message);
}

function isContextEdit(entry: Entry): entry is EntryOf<"context_edit"> {
  return entry.type === "context_edit";
}

async function readHead(store: SessionStore, sessionId: string): Promise<SessionHead> {
  const head = await store.head(sessionId);
  if (head === null) throw new SessionNotFoundError(sessionId);
  return head;
}

/** A recorded event that is emitted once its claim is over, or once another one is recorded. */
interface LastEvent {
  readonly event: RecordedEvent;
  readonly position: number;
}

/** Drafts that wait to be written, with the promise of their caller. */
interface Waiting {
  readonly drafts: readonly EntryDraft[];
  readonly alone: boolean;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}
