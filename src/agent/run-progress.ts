import { messagesOf } from "../session/context/context.ts";
import { SessionError } from "../session/errors.ts";
import type { EntryDraft } from "../session/log/entry.ts";
import { checkedMessage } from "../session/checked-message.ts";
import type { Message } from "../session/message.ts";
import type { SandboxPlacement } from "../session/log/header.ts";
import type { Sandbox } from "../session/sandbox/sandbox.ts";
import { Session } from "../session/value/session.ts";
import { type Row, rowOf, Transcript } from "../session/value/transcript.ts";
import { addCost, addUsage, NO_USAGE, type Usage } from "../session/usage.ts";
import type { EventLog } from "./event-log.ts";
import type { SessionRoom } from "../tree/tree-backing.ts";
import type { KeptEntries, ParkedFact, RunSink } from "./persist/run-sink.ts";

/** What a run's progress starts with. */
export interface ProgressInit {
  readonly runId: string;
  readonly output: Session;
  readonly events: EventLog;
  readonly signal: AbortSignal;
  /** Whether the run is to be kept; nothing counts as on record then before `keepIn` has said where. */
  readonly kept: boolean;
}

/**
 * How far a run has come: its rows, durable before they count, what it spent, and who is told.
 *
 * Its entries go to the sink in order, one append at a time. What comes while one is under way, or before the sink is open,
 * goes together in the next, so that many tools that start at once cost one write.
 */
export class RunProgress {
  readonly runId: string;
  /** The session that the run makes. */
  readonly output: Session;
  readonly events: EventLog;
  readonly signal: AbortSignal;
  readonly kept: boolean;
  #sink: RunSink | null = null;
  #waiting: Waiting[] = [];
  #writing: Promise<unknown> | null = null;
  #failure: { readonly error: unknown } | null = null;
  #notedHandleId: string | null = null;
  #moved = false;
  /** Users whose own words a message repeats. */
  readonly #authors = new WeakMap<Message, string>();

  constructor({ runId, output, events, signal, kept }: ProgressInit) {
    this.runId = runId;
    this.output = output;
    this.events = events;
    this.signal = signal;
    this.kept = kept;
  }

  /** From here on everything is kept. */
  keepIn(sink: RunSink): void {
    this.#sink = sink;
    this.#writeWaiting();
  }

  /** Fails what waits for a sink, where there is none yet. */
  giveUp(error: unknown): void {
    if (this.#sink !== null) return;
    this.#failure ??= { error };
    this.#writeWaiting();
  }

  /** Records a user as the author of a message that the run adds later, so that erasing the user finds it. */
  setAuthor(message: Message, userId: string | undefined): void {
    if (userId !== undefined) this.#authors.set(message, userId);
  }

  /**
   * Adds messages, with facts that must be on record together with them. Each is told of as the row that it became, under
   * its entry's id where the run is kept; so is what others said meanwhile, which comes first.
   */
  add(
    given: readonly Message[],
    onRow: (row: Row) => void = () => {},
    facts: readonly EntryDraft[] = [],
  ): Promise<void> {
    const messages = given.map(checkedMessage);
    const grow = ({ entries, others = [], movedTo }: KeptEntries): void => {
      if (movedTo !== undefined) this.#tellMoved(movedTo.leafId);
      const said = others.flatMap((entry) => messagesOf(entry).map((message) => rowUnder(entry.id, message)));
      const rows = [...said, ...messages.map((message, index) => rowUnder(entries[index]?.id, message))];
      Session.grow(this.output, { transcript: this.output.transcript.appendAll(rows) });
      for (const row of rows) onRow(row);
    };
    if (!this.kept) {
      grow({ entries: [] });
      return Promise.resolve();
    }
    // A store need not look for an id that it gives itself, which takes nearly as long as writing the row.
    const drafts: EntryDraft[] = messages.map((message, index) => {
      const by = this.#authors.get(given[index] as Message);
      return by === undefined ? { type: "message", message } : { type: "message", message, by };
    });
    return this.#write(facts.length === 0 ? drafts : [...drafts, ...facts]).then(grow);
  }

  /** Once, as what follows stays on the run's own branch anyway. */
  #tellMoved(leafId: string | null): void {
    if (!this.#moved) this.events.add({ type: "leaf-moved", leafId });
    this.#moved = true;
  }

  /** Puts facts on record, where the run is kept; with `alone`, in an append of their own, so that only they are refused. */
  async note(facts: readonly EntryDraft[], { alone = false }: { readonly alone?: boolean } = {}): Promise<void> {
    if (this.kept && facts.length > 0) await this.#write(facts, alone);
  }

  /**
   * Puts on record that the run waits for answers, unless others have said something meanwhile. `parked` is called before
   * anything else is written.
   */
  async park(factNow: () => ParkedFact | null, parked: () => void): Promise<void> {
    await this.idle();
    // What was written meanwhile may be the answer, so that only now is it known what still waits.
    const fact = factNow();
    if (fact === null) return;
    const parking = (this.#sink as Required<RunSink>).park(fact).then((isOnRecord) => {
      if (isOnRecord) parked();
    });
    const settled = (): void => this.#next();
    this.#writing = parking.then(settled, settled);
    return parking;
  }

  /** The session's sandbox; where it is goes on record before a tool acts in it, so that whoever recovers the run finds it again. */
  async requireSandbox(): Promise<Sandbox> {
    const sandbox = await this.output.requireSandbox();
    const place = this.output.sandboxPlacement;
    if (this.kept && place !== null && this.#notedHandleId !== place.handleId) {
      this.#notedHandleId = place.handleId;
      await this.note([{ type: "run", runId: this.runId, phase: "started", sandbox: place }]);
    }
    return sandbox;
  }

  /** What the end of the run says of where its tools acted. */
  get openPlace(): { readonly sandbox?: SandboxPlacement } {
    const place = this.output.sandbox === null ? null : this.output.sandboxPlacement;
    return place === null ? {} : { sandbox: place };
  }

  spend(usage: Usage | undefined, cost: number | undefined): void {
    if (usage === undefined && cost === undefined) return;
    const { output } = this;
    Session.grow(output, {
      ...(usage && { usage: addUsage(output.usage ?? NO_USAGE, usage) }),
      ...(cost !== undefined && { cost: addCost(output.cost ?? 0, cost) }),
    });
  }

  /** Notes with the transcript what stands for its first rows from here on, so that the next run need not find out again. */
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
    const origin = this.#sink?.origin() ?? null;
    if (origin === null) return;
    Session.grow(this.output, { transcript: Transcript.withOrigin(this.output.transcript, origin) });
  }

  /** What room the run's session has; null where it is not limited. */
  get room(): SessionRoom | null {
    return this.#sink?.room ?? null;
  }

  get sink(): RunSink | null {
    return this.#sink;
  }

  /** Resolves to the entries once they are durable. After one failure everything fails the same way. */
  #write(drafts: readonly EntryDraft[], alone = false): Promise<KeptEntries> {
    // Most of the time nothing else is being written, and then nobody has to stand in a line.
    if (this.#writing === null && this.#sink !== null && this.#failure === null)
      return this.#writeNow(this.#sink, drafts);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ drafts, alone, resolve, reject });
      if (this.#writing === null) this.#writeWaiting();
    });
  }

  #writeNow(sink: RunSink, drafts: readonly EntryDraft[]): Promise<KeptEntries> {
    const writing = sink.append(drafts).then(this.#written, this.#failed);
    this.#writing = writing;
    return writing;
  }

  readonly #written = (kept: KeptEntries): KeptEntries => {
    this.#next();
    return kept;
  };

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
    if (this.#waiting.length === 0 || (this.#sink === null && this.#failure === null)) return;
    if (this.#failure !== null || this.#sink === null) {
      for (const { reject } of this.#waiting.splice(0)) reject(this.#failure?.error);
      return;
    }
    const together = this.#waiting.findIndex(({ alone }) => alone);
    const batch = this.#waiting.splice(0, together < 0 ? this.#waiting.length : Math.max(together, 1));
    this.#writeNow(
      this.#sink,
      batch.flatMap(({ drafts }) => drafts),
    ).then(
      (kept) => share(kept, batch),
      (error) => batch.forEach(({ reject }) => void reject(error)),
    );
  }
}

/** Drafts that are to be written, and whoever waits for them. */
interface Waiting {
  readonly drafts: readonly EntryDraft[];
  readonly alone: boolean;
  readonly resolve: (kept: KeptEntries) => void;
  readonly reject: (error: unknown) => void;
}

/** Gives each its own entries of one append. What others added stands before all of them. */
function share({ entries, ...rest }: KeptEntries, batch: readonly Waiting[]): void {
  let from = 0;
  for (const { drafts, resolve } of batch) {
    const own = entries.slice(from, from + drafts.length);
    resolve(from === 0 ? { ...rest, entries: own } : { entries: own });
    from += drafts.length;
  }
}

function rowUnder(id: string | undefined, message: Message): Row {
  return rowOf(id === undefined ? { message } : { message, id });
}
