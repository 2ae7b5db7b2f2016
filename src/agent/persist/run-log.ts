import { SessionBusyError, SessionConflictError, SessionError } from "../../session/errors.ts";
import { checkedMessage } from "../../session/checked-message.ts";
import { messagesOf } from "../../session/context/context.ts";
import { type Entry, type EntryDraft, type FactBody, isNode } from "../../session/log/entry.ts";
import { rootIdOf, type SandboxPlacement } from "../../session/log/header.ts";
import type { RecordedEvent } from "../../session/log/run-event.ts";
import { newRun, type RunState, stepRun } from "../../session/log/run-fold.ts";
import type { Message } from "../../session/message.ts";
import type { AppendOptions, Guard } from "../../session/store.ts";
import { Session } from "../../session/value/session.ts";
import { type Row, rowOf, Transcript, type TranscriptOrigin } from "../../session/value/transcript.ts";
import type { SessionRoom } from "../../tree/tree-backing.ts";
import { promptCacheKey } from "../model/cache-key.ts";
import type { EventLog } from "../event-log.ts";
import type { LeaseHold } from "./lease-hold.ts";
import type { LogAccess } from "./log-access.ts";
import { isSaidTo, type LogFollower, type RunMessage } from "./log-follower.ts";

/** The guard of appends that are not refused for want of room. */
export const UNLIMITED: Guard = { maxTurns: Number.MAX_SAFE_INTEGER };

/** How a run ended. */
export type RunOutcome = Pick<
  Extract<FactBody, { type: "run" }>,
  "error" | "usage" | "truncated" | "output" | "sandbox"
> & { readonly phase: "finished" | "failed" | "cancelled" };

/** What is recorded when a run parks. */
export type ParkedFact = Omit<Extract<FactBody, { type: "run_parked" }>, "type" | "runId">;

/** What the log of a run starts with. */
export interface RunLogInit {
  readonly runId: string;
  /** The session that the run makes. */
  readonly output: Session;
  readonly events: EventLog;
  readonly signal: AbortSignal;
  /** Whether the run is kept. */
  readonly kept: boolean;
  /** What to record as the handle of the sandbox instead of its own. */
  readonly sandboxHandleId?: string | undefined;
}

/** How a run begins in its log. */
export interface RunBeginning {
  readonly access: LogAccess;
  /** The run as its log told it before this claim, and up to which position that was. */
  readonly state: RunState;
  readonly from: number;
  /** The node that the first entry follows, and whether the leaf is there. */
  readonly lastId: string | null;
  readonly atLeaf: boolean;
  readonly drafts: readonly EntryDraft[];
  /** How the drafts are appended; left out if they are stored already. */
  readonly append?: AppendOptions;
  /** The session to work on: what its log says, then the input. */
  readonly user: Session;
  /** Asked once the start is recorded; with false the run releases its session again, and is due. */
  readonly mayBegin?: (() => Promise<boolean>) | undefined;
}

/**
 * The log of a run: what it says is durable before it counts, and every entry, its own and those that others append, goes through
 * `stepRun` once, in the order of the log. The events that the log records come from there, and so does what the run has spent.
 *
 * Entries go to the session in order, one append at a time. What comes while one is under way, or before the log is open, goes
 * together in the next, so that many tools that start together cost one append. What others add to the session comes before
 * the run's next row. If someone moves the leaf elsewhere, the run continues below its own last entry.
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
  #state: RunState;
  #last: RecordedEvent | null = null;
  #follower: LogFollower | null = null;
  /** The follower through which others say something to the run. */
  #messages: LogFollower | null = null;
  #unsubscribe: () => void = () => {};
  #unheard: RunMessage[] = [];
  #onMessage: (message: RunMessage) => void = (message) => void this.#unheard.push(message);
  /** Entries in the order of the log that were not folded yet: one of the run waits until its append has an answer. */
  readonly #pending: Entry[] = [];
  /** Up to which position appends of the run have an answer, and where its own rows begin. */
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
  /** Whether the follower has seen that the run parked: its append may have no answer yet. */
  #parkedSeen = false;
  #waiting: Waiting[] = [];
  #writing: Promise<unknown> | null = null;
  #failure: { readonly error: unknown } | null = null;
  #notedHandleId: string | null = null;
  #cacheKey: string | undefined;
  /** Users whose own words a message repeats. */
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

  /** The run as its log tells it. */
  get state(): RunState {
    return this.#state;
  }

  /** The event that ended or parked the run; null until then. Whoever ends the run emits it. */
  get last(): RecordedEvent | null {
    return this.#last;
  }

  /** The stored session that the run is kept in; null if it is kept in none, or before it began. */
  get sessionId(): string | null {
    return this.#access?.sessionId ?? null;
  }

  /** The key of the prompt cache of the run's session; undefined if it is kept in none: nothing would ask with it again. */
  get cacheKey(): string | undefined {
    const access = this.#access;
    if (access === null || access.sessionId === null) return undefined;
    this.#cacheKey ??= promptCacheKey(rootIdOf(access.header), access.header.userId);
    return this.#cacheKey;
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

  /** How much room the session has; null if it is not limited. */
  get room(): SessionRoom | null {
    return this.#access?.room ?? null;
  }

  /** Whether the run can release its session while it waits for answers. */
  get parks(): boolean {
    return this.#access?.parks === true;
  }

  /** Whether anyone has subscribed to the events of the run, or of what it is a part of. */
  get isFollowed(): boolean {
    return this.#access?.isFollowed() ?? this.events.subscribed;
  }

  /** Appends the start of the run; from here on it has its session. `ready` is called before the first event. */
  async begin(beginning: RunBeginning, ready: (user: Session) => void): Promise<void> {
    const { access, state, from, lastId, atLeaf, drafts, append, user } = beginning;
    this.#state = state;
    this.#lastId = lastId;
    this.#atLeaf = atLeaf;
    this.#follower = access.follow(from, (entry) => this.#take(entry));
    this.#messages = this.#follower ?? access.messages?.((message) => this.#onMessage(message)) ?? null;
    let stored: Awaited<ReturnType<LogAccess["append"]>> | null = null;
    if (append !== undefined) {
      stored = await access.append(drafts, { ...append, run: this.runId });
      if (beginning.mayBegin !== undefined && !(await beginning.mayBegin())) throw await this.#giveBack(access);
    }
    this.#access = access;
    ready(user);
    const { usage, cost } = state;
    const recovered = usage === null && cost === null ? {} : { recovered: { sessionId: user.id, usage, cost } };
    Session.grow(this.output, { transcript: user.transcript, ...this.#spent(), ...recovered });
    await (stored === null ? this.#follower?.poll() : this.#settle(stored, null));
    this.#begun = this.#position + 1;
    this.#others.clear();
    this.#answered = Math.max(this.#answered, this.#position);
    this.#drain();
    this.#writeWaiting();
  }

  /** Records that the run waits for no answer, so that it is due, and this was no claim that got nowhere. */
  async #giveBack(access: LogAccess): Promise<SessionBusyError> {
    const { runId } = this;
    await access.append([{ type: "run_parked", runId, questions: [] }], { guard: access.guard, run: runId });
    await access.release(null);
    return new SessionBusyError(access.header.id, "as many runs as its user may have at once");
  }

  /** From here on calls `onMessage` with what others say to the run, in order, once each. */
  listen(onMessage: (message: RunMessage) => void): void {
    this.#onMessage = onMessage;
    for (const message of this.#unheard.splice(0)) onMessage(message);
    this.#unsubscribe = this.#messages?.subscribe() ?? (() => {});
  }

  /** Reads now what others have appended. */
  async poll(): Promise<void> {
    await this.#messages?.poll();
  }

  /** Emits the start of a run that asks its model before it opens its log, so that a refused answer leaves nothing behind. */
  announce(): void {
    this.#announced = true;
    this.events.add({ type: "run-started" });
  }

  /** Fails what waits for the log to open, if it never will. */
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
    // A store need not look for an id that it gives itself, which takes nearly as long as writing the row.
    const drafts = given.map((each): EntryDraft => {
      const message = checkedMessage(each);
      const by = this.#authors.get(each);
      return by === undefined ? { type: "message", message } : { type: "message", message, by };
    });
    return this.#write(facts.length === 0 ? drafts : [...drafts, ...facts]);
  }

  /** Records facts; with `alone`, in an append of their own, so that only they are refused. */
  async note(facts: readonly EntryDraft[], { alone = false }: { readonly alone?: boolean } = {}): Promise<void> {
    if (facts.length > 0) await this.#write(facts, alone);
  }

  /**
   * Records that the run waits for answers, unless others have said something meanwhile. `parked` is called before anything
   * else is written.
   */
  async park(factNow: () => ParkedFact | null, parked: () => void): Promise<void> {
    await this.idle();
    // What was written meanwhile may be the answer, so that only now is it known what still waits.
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
   * Records how the run ended and releases the session. False, with nothing written, if the run is to count as finished and
   * others have said something meanwhile, which was passed on.
   */
  async end(outcome: RunOutcome): Promise<boolean> {
    const access = this.#opened();
    // From here on nothing else is appended, unless it turns out that the run goes on.
    this.#over = true;
    const draft: EntryDraft = { type: "run", runId: this.runId, ...outcome, ...this.openPlace };
    try {
      if (outcome.phase !== "finished") await this.#append([draft]);
      else if (!(await this.#appendIfCurrent(draft))) {
        this.#over = false;
        return false;
      }
      this.#unsubscribe();
      await access.release(outcome.phase);
      return true;
    } catch (error) {
      this.#unsubscribe();
      await access.release(null).catch(() => {});
      throw error;
    }
  }

  /** Releases the session as a crash would: the run can be recovered. */
  async abandon(): Promise<void> {
    if (this.#over || this.#access === null) return;
    this.#over = true;
    this.#unsubscribe();
    await this.#access.release(null);
  }

  /** Records the sandbox of the session before a tool acts in it, so that whoever recovers the run finds it again. */
  async #noteSandbox(): Promise<void> {
    const { sandbox } = this.openPlace;
    const isNoted = sandbox === undefined || this.#notedHandleId === sandbox.handleId;
    if (!this.kept || this.#access === null || this.#over || isNoted) return;
    this.#notedHandleId = sandbox.handleId;
    await this.note([{ type: "run", runId: this.runId, phase: "started", sandbox }]);
  }

  /** Where the tools act, once that is open. */
  get openPlace(): { readonly sandbox?: SandboxPlacement } {
    const place = this.output.sandbox === null ? null : this.output.sandboxPlacement;
    if (place === null) return {};
    return { sandbox: this.#handleId === undefined ? place : { ...place, handleId: this.#handleId } };
  }

  /** Notes with the transcript what replaces its first rows from here on, so that the next run need not find out again. */
  compacted({ id, summary, keptRows }: { id: string; summary: string; keptRows: number }): void {
    const { transcript } = this.output;
    const compaction = { id, summary, from: transcript.length - keptRows };
    Session.grow(this.output, { transcript: Transcript.withCompaction(transcript, compaction) });
  }

  /** Resolves when nothing is being written; never rejects. */
  async idle(): Promise<void> {
    while (this.#writing !== null) await this.#writing.catch(() => {});
  }

  /** Notes with the transcript where its rows are kept, so that the next run can build on them by reference. */
  settleOrigin(): void {
    const origin = this.origin();
    if (origin === null) return;
    Session.grow(this.output, { transcript: Transcript.withOrigin(this.output.transcript, origin) });
  }

  /** Where the rows written so far can be built on by reference; null if they cannot. */
  origin(): Omit<TranscriptOrigin, "length"> | null {
    const { store = null, sessionId = null, shared = false } = this.#access ?? {};
    const entryId = this.#lastId;
    return !shared || store === null || sessionId === null || entryId === null ? null : { store, sessionId, entryId };
  }

  get #isParked(): boolean {
    return this.#parkedSeen || this.#state.open?.state === "parked" || this.#state.open?.state === "answered";
  }

  #opened(): LogAccess {
    if (this.#access !== null && !this.#over) return this.#access;
    throw new SessionError("RUN_ENDED", `Run ${this.runId} has ended and takes no more entries.`);
  }

  /** Appends at the version that is known here; false if others have appended meanwhile, which was passed on by then. */
  async #appendIfCurrent(draft: EntryDraft): Promise<boolean> {
    const follower = this.#follower;
    try {
      await this.#append([draft], follower === null ? {} : { expectedVersion: follower.next });
      return true;
    } catch (error) {
      if (!(error instanceof SessionConflictError)) throw error;
      await this.poll();
      return false;
    }
  }

  async #append(
    drafts: readonly EntryDraft[],
    options: AppendOptions = {},
    batch: readonly Waiting[] | null = null,
  ): Promise<void> {
    const access = this.#access as LogAccess;
    const guard = access.room === null ? access.guard : { ...access.guard, ...UNLIMITED };
    const stored = await access.append(drafts, { below: this.#lastId, guard, run: this.runId, ...options });
    await this.#settle(stored, batch);
  }

  /** Folds what others appended before, then the run's own entries. */
  async #settle(
    { entries, head, version }: Awaited<ReturnType<LogAccess["append"]>>,
    batch: readonly Waiting[] | null,
  ): Promise<void> {
    const follower = this.#follower;
    if (follower === null) for (const entry of entries) this.#fold(entry);
    else {
      // An entry that is known already is a repetition of an earlier append.
      const [first] = entries.filter(({ seq }) => seq >= follower.next || seq > this.#answered);
      this.#answered = entries.reduce((latest, { seq }) => Math.max(latest, seq), this.#answered);
      if (first !== undefined && first.seq > follower.next) await follower.poll(first.seq);
      for (const entry of entries) follower.take(entry);
      this.#drain();
    }
    for (const { resolve } of batch ?? []) resolve();
    const isAtEnd = version === undefined || version === this.#position + 1;
    // A run that began beside the leaf was never left.
    if (!isAtEnd || this.#lastId === null) return;
    const moved = this.#atLeaf && head.leafId !== this.#lastId;
    this.#atLeaf = head.leafId === this.#lastId;
    if (moved && !this.#moved) this.events.add({ type: "leaf-moved", leafId: head.leafId });
    // Once, as what follows stays on the run's own branch anyway.
    this.#moved ||= moved;
  }

  #take(entry: Entry): void {
    // What is said after the run has parked is said to the next claim.
    if (entry.type === "run_parked" && entry.runId === this.runId && entry.seq >= this.#begun) this.#parkedSeen = true;
    const isOthers = entry.run !== this.runId;
    if (isOthers && isSaidTo(this.runId, entry) && !this.#isParked) this.#onMessage(entry);
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
    if (isOwn && entry.type === "message") this.#grow(entry);
    const { state, event } = stepRun(this.#state, entry, (this.#access as LogAccess).header);
    const isSpent = state.usage !== this.#state.usage || state.cost !== this.#state.cost;
    this.#state = state;
    if (isSpent) Session.grow(this.output, this.#spent());
    if (event === null || (this.#announced && event.type === "run-started")) return;
    if (state.open === null || state.open.state === "parked" || state.open.state === "answered") this.#last = event;
    else this.events.add(event as Parameters<EventLog["add"]>[0], "recorded");
  }

  #grow(entry: Extract<Entry, { type: "message" }>): void {
    const rows = [...this.#othersAbove(entry), rowOf({ message: entry.message, id: entry.id })];
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
    this.#others.clear();
    return above.flatMap((entry) => messagesOf(entry).map((message) => rowOf({ message, id: entry.id })));
  }

  #spent(): Pick<Parameters<typeof Session.grow>[1], "usage" | "cost"> {
    const { usage, cost } = this.#state;
    return { ...(usage === null ? {} : { usage }), ...(cost === null ? {} : { cost }) };
  }

  /** Resolves once the entries are durable and folded. After one failure everything fails the same way. */
  #write(drafts: readonly EntryDraft[], alone = false): Promise<void> {
    // Usually nothing else is being written, and then nothing has to wait.
    if (this.#writing === null && this.#access !== null && this.#failure === null) return this.#writeNow(drafts, null);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ drafts, alone, resolve, reject });
      if (this.#writing === null) this.#writeWaiting();
    });
  }

  #writeNow(drafts: readonly EntryDraft[], batch: readonly Waiting[] | null): Promise<void> {
    const isRefused = this.#over || (this.#isParked && drafts.some(({ type }) => type !== "approval"));
    const appending = isRefused
      ? Promise.reject(new SessionError("RUN_ENDED", `Run ${this.runId} has ended and takes no more entries.`))
      : this.#append(drafts, {}, batch);
    const writing = appending.then(this.#written, this.#failed);
    this.#writing = writing;
    return writing;
  }

  readonly #written = (): void => this.#next();

  readonly #failed = (error: unknown): never => {
    // What follows would build on an entry that is not there. An answer that someone else gave before is none of these.
    if (!(error instanceof SessionError && error.code === "ENTRY_EXISTS")) this.#failure ??= { error };
    this.#next();
    throw error;
  };

  #next(): void {
    this.#writing = null;
    this.#writeWaiting();
  }

  #writeWaiting(): void {
    if (this.#waiting.length === 0 || (this.#access === null && this.#failure === null)) return;
    if (this.#failure !== null) {
      for (const { reject } of this.#waiting.splice(0)) reject(this.#failure.error);
      return;
    }
    const together = this.#waiting.findIndex(({ alone }) => alone);
    const batch = this.#waiting.splice(0, together < 0 ? this.#waiting.length : Math.max(together, 1));
    this.#writeNow(
      batch.flatMap(({ drafts }) => drafts),
      batch,
    ).catch((error) => batch.forEach(({ reject }) => void reject(error)));
  }
}

/** Drafts that are to be written, and whoever waits for them. */
interface Waiting {
  readonly drafts: readonly EntryDraft[];
  readonly alone: boolean;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}
