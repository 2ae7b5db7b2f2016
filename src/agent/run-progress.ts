import type { EntryDraft } from "../session/entry.ts";
import { Session } from "../session/session.ts";
import { Transcript, type Row } from "../session/transcript.ts";
import { addUsage, NO_USAGE, type Usage } from "../session/usage.ts";
import type { EventLog } from "./event-log.ts";
import type { RunSink } from "./run-sink.ts";
import { RunWriter } from "./run-writer.ts";

/** How far a run has come: its rows, durable before they count, what it spent, and who is told. */
export class RunProgress {
  readonly runId: string;
  /** The session that the run makes. */
  readonly output: Session;
  readonly events: EventLog;
  readonly signal: AbortSignal;
  #sink: RunSink | null = null;
  #writer: RunWriter | null = null;

  constructor(init: { runId: string; output: Session; events: EventLog; signal: AbortSignal }) {
    this.runId = init.runId;
    this.output = init.output;
    this.events = init.events;
    this.signal = init.signal;
  }

  /** From here on everything is kept. */
  keepIn(sink: RunSink): void {
    this.#sink = sink;
    this.#writer = new RunWriter(sink);
  }

  get kept(): boolean {
    return this.#sink !== null;
  }

  /** Adds rows, with facts that must be on record together with them. */
  async add(rows: readonly Row[], facts: readonly EntryDraft[] = []): Promise<void> {
    if (this.#writer !== null) {
      const messages = rows.map((row): EntryDraft => ({ type: "message", id: row.id, message: row.message }));
      await this.#writer.write([...messages, ...facts]);
    }
    Session.grow(this.output, { transcript: this.output.transcript.appendAll(rows) });
  }

  /** Puts facts on record, where the run is kept. */
  async note(facts: readonly EntryDraft[]): Promise<void> {
    await this.#writer?.write(facts);
  }

  spend(usage: Usage | undefined, cost: number | undefined): void {
    if (usage === undefined && cost === undefined) return;
    const { output } = this;
    Session.grow(output, {
      ...(usage === undefined ? {} : { usage: addUsage(output.usage ?? NO_USAGE, usage) }),
      ...(cost === undefined ? {} : { cost: (output.cost ?? 0) + cost }),
    });
  }

  /** Resolves when nothing is being written. */
  async idle(): Promise<void> {
    await this.#writer?.idle();
  }

  /** Notes with the transcript where its rows are kept, so that the next run can build on them by reference. */
  settleOrigin(): void {
    const origin = this.#sink?.origin() ?? null;
    if (origin === null) return;
    Session.grow(this.output, { transcript: Transcript.withOrigin(this.output.transcript, origin) });
  }

  get sink(): RunSink | null {
    return this.#sink;
  }
}
