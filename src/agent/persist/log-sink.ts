import { type Entry, type EntryDraft, isNode } from "../../session/log/entry.ts";
import { SessionConflictError, SessionError } from "../../session/errors.ts";
import type { AppendOptions, AppendResult, Guard, SessionStore } from "../../session/store.ts";
import type { TranscriptOrigin } from "../../session/value/transcript.ts";
import type { SessionRoom } from "../../tree/tree-backing.ts";
import type { HeardFact, KeptEntries, ParkedFact, RunLease, RunOutcome, RunSink } from "./run-sink.ts";
import { isSaidTo, LogEar } from "./run-ears.ts";

/** The guard of appends that are not refused for want of room. */
export const UNLIMITED: Guard = { maxTurns: Number.MAX_SAFE_INTEGER };

const NOBODY: readonly Entry[] = Object.freeze([]);

/** What keeps other runs away from a session. */
export interface RunHold {
  /** What must hold for each append; null where nobody else can append as a run. */
  readonly guard: Guard | null;
  /** The lease that it is, where it is one. */
  readonly lease?: RunLease;
  /** Lets go after the end of the run was recorded. */
  finish(phase: RunOutcome["phase"]): Promise<void>;
  /** Lets go at once. */
  letGo(): Promise<void>;
}

/** A log that a run is kept in. */
export interface KeptLog {
  readonly store: SessionStore;
  readonly sessionId: string;
  append(drafts: readonly EntryDraft[], options: AppendOptions): Promise<AppendResult>;
  /** Whether later sessions can build on the rows by reference. */
  readonly shared: boolean;
  /** What room the session has; left out where its turns are not limited. */
  readonly room?: () => SessionRoom | null;
}

/** Which run a sink keeps, and where it begins. */
export interface LogSinkInit {
  readonly runId: string;
  readonly hold: RunHold;
  readonly start: {
    /** The node that the first entry follows. */
    readonly lastId: string | null;
    readonly version: number;
    /** Up to where the log is known to the run (default: all of it). */
    readonly heard?: number | undefined;
    /** Whether the leaf is that node (default). */
    readonly atLeaf?: boolean;
  };
}

/**
 * Keeps a run in a session's log, one entry after the other, where the session is: what others add meanwhile comes in
 * between. Only where someone moves the leaf elsewhere does the run go on by itself.
 */
export class LogSink implements RunSink {
  readonly #log: KeptLog;
  readonly #init: LogSinkInit;
  readonly #guard: Pick<AppendOptions, "guard">;
  #lastId: string | null;
  #version: number;
  readonly #ear: LogEar;
  /** Whether the leaf was at the run's end when it last appended. */
  #atLeaf: boolean;
  /** What was said before anyone listened. */
  readonly #untold: HeardFact[] = [];
  #tell = (fact: HeardFact): void => void this.#untold.push(fact);
  #stopListening: () => void = () => {};
  #ended = false;
  /** Whether "run parked" is on record: what is said after it is said to the next claim, not to this one. */
  #parked = false;

  constructor(log: KeptLog, init: LogSinkInit) {
    this.#log = log;
    this.#init = init;
    const guard = log.room === undefined ? init.hold.guard : { ...init.hold.guard, ...UNLIMITED };
    this.#guard = guard === null ? {} : { guard };
    const { lastId, version, heard = version, atLeaf = true } = init.start;
    this.#lastId = lastId;
    this.#version = version;
    this.#ear = new LogEar(log.store, log.sessionId, heard, (entry) => {
      // The answer to the append may be lost, or come later than the entry itself and what follows it.
      if (isParkedOf(init, entry)) this.#parked = true;
      else if (!this.#parked && isSaidTo(init.runId, entry)) this.#tell(entry);
    });
    this.#atLeaf = atLeaf;
  }

  get sessionId(): string {
    return this.#log.sessionId;
  }

  get room(): SessionRoom | null {
    return this.#log.room?.() ?? null;
  }

  get version(): number {
    return this.#ear.heard;
  }

  get lease(): RunLease | null {
    return this.#init.hold.lease ?? null;
  }

  /** The first append, which may be refused for want of room; with `beside`, it begins a branch wherever the leaf is. */
  async begin(
    drafts: readonly EntryDraft[],
    { beside, guard }: { readonly beside: boolean; readonly guard: Guard },
  ): Promise<void> {
    const where = beside ? { onto: this.#lastId } : { below: this.#lastId };
    await this.#append(drafts, { ...where, verbatim: true, guard });
  }

  append(drafts: readonly EntryDraft[]): Promise<KeptEntries> {
    // Of a parked run, only an answer that came at the same moment is still put on record.
    const isOver = this.#ended || (this.#parked && drafts.some(({ type }) => type !== "approval"));
    if (isOver) return Promise.reject(this.#endedError());
    return this.#append(drafts, { below: this.#lastId, ...this.#guard });
  }

  listen(tell: (fact: HeardFact) => void): void {
    this.#tell = tell;
    for (const fact of this.#untold.splice(0)) tell(fact);
    this.#stopListening = this.#ear.listen();
  }

  look(): Promise<void> {
    return this.#ear.look();
  }

  async park(fact: ParkedFact): Promise<boolean> {
    if (this.#ended) throw this.#endedError();
    const isOnRecord = await this.#appendIfHeard({ type: "run_parked", runId: this.#init.runId, ...fact });
    return isOnRecord || this.#parked;
  }

  async end(outcome: RunOutcome): Promise<boolean> {
    if (this.#ended) throw this.#endedError();
    // From here on nothing else is appended, unless it turns out that the run goes on.
    this.#ended = true;
    const { runId, hold } = this.#init;
    const end: EntryDraft = { type: "run", runId, ...outcome };
    try {
      if (outcome.phase !== "finished") await this.#append([end], { below: this.#lastId, ...this.#guard });
      else if (!(await this.#appendIfHeard(end))) {
        this.#ended = false;
        return false;
      }
      this.#close();
      await hold.finish(outcome.phase);
      return true;
    } catch (error) {
      this.#close();
      await hold.letGo().catch(() => {});
      throw error;
    }
  }

  async abandon(): Promise<void> {
    if (this.#ended) return;
    this.#close();
    await this.#init.hold.letGo();
  }

  origin(): Omit<TranscriptOrigin, "length"> | null {
    const { store, sessionId, shared } = this.#log;
    return !shared || this.#lastId === null ? null : { store, sessionId, entryId: this.#lastId };
  }

  #close(): void {
    this.#ended = true;
    this.#stopListening();
  }

  /** Appends where all that others have said was heard; else false, and it has been heard by then. */
  async #appendIfHeard(draft: EntryDraft): Promise<boolean> {
    try {
      await this.#append([draft], { below: this.#lastId, expectedVersion: this.#ear.heard, ...this.#guard });
      return true;
    } catch (error) {
      if (!(error instanceof SessionConflictError)) throw error;
      await this.look();
      return false;
    }
  }

  async #append(drafts: readonly EntryDraft[], options: AppendOptions): Promise<KeptEntries> {
    const { entries, version, head } = await this.#log.append(drafts, options);
    // A store repeats an append whose answer was lost. Others may have appended since, which has yet to be heard.
    const end = entries.reduce((latest, { seq }) => Math.max(latest, seq + 1), 0);
    if (entries.some(({ type }) => type === "run_parked")) this.#parked = true;
    // An entry that was there before this call is a repetition, and the run has gone on since.
    const fresh = entries.find(({ seq }) => seq >= this.#ear.heard);
    if (fresh !== undefined && fresh.seq > this.#ear.heard) await this.#ear.look(fresh.seq);
    this.#ear.skipTo(end);
    const isAdded = (entry: Entry): boolean => isNode(entry) && entry.seq >= this.#version;
    const first = entries.find(isAdded);
    if (first === undefined) return { entries };
    const others = first.parentId === this.#lastId ? NOBODY : await this.#othersBefore(first);
    this.#lastId = (entries.findLast(isAdded) as Entry).id;
    this.#version = end;
    // Whether others have moved the leaf or gone on below the run's last entry shows with the next append.
    if (version > end) return { entries, others };
    // A run that began beside the leaf was never left.
    const moved = this.#atLeaf && head.leafId !== this.#lastId;
    this.#atLeaf = head.leafId === this.#lastId;
    return moved ? { entries, others, movedTo: { leafId: head.leafId } } : { entries, others };
  }

  /** The nodes between the last one and a new one. They came after the run last appended. */
  async #othersBefore({ seq, parentId }: Entry): Promise<readonly Entry[]> {
    const { store, sessionId } = this.#log;
    const above = new Map<string, Entry>();
    for await (const entry of store.read(sessionId, { after: this.#version - 1, before: seq }))
      above.set(entry.id, entry);
    const others: Entry[] = [];
    for (let entry = above.get(parentId ?? ""); entry !== undefined; entry = above.get(entry.parentId ?? ""))
      others.unshift(entry);
    return others;
  }

  #endedError(): SessionError {
    return new SessionError("RUN_ENDED", `Run ${this.#init.runId} has ended and takes no more entries.`);
  }
}

/** Whether an entry says that a run has parked, in the claim that a sink keeps. */
function isParkedOf({ runId, start }: LogSinkInit, entry: Entry): boolean {
  return entry.type === "run_parked" && entry.runId === runId && entry.seq >= start.version;
}
