import type { EntryDraft } from "../../session/entry.ts";
import { SessionError } from "../../session/errors.ts";
import type { AppendOptions, Guard } from "../../session/store.ts";
import type { TranscriptOrigin } from "../../session/transcript.ts";
import type { ChainedEntries, ChainOptions, EntryChain } from "../../tree/entry-chain.ts";
import type { SessionRoom } from "../../tree/tree-backing.ts";
import type { RunLease, RunOutcome, RunSink } from "../run-sink.ts";

/** The guard of appends that are not refused for want of room. */
export const UNLIMITED: Guard = { maxTurns: Number.MAX_SAFE_INTEGER };

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

/** Keeps a run in a session's log. */
export class LogSink implements RunSink {
  readonly sessionId: string;
  readonly #runId: string;
  readonly #chain: EntryChain;
  readonly #hold: RunHold;
  readonly #store: object | null;
  readonly #options: Pick<AppendOptions, "guard">;
  readonly #room: () => SessionRoom | null;
  #ended = false;

  /** `store` is where later sessions can build on the rows by reference; null where they cannot. */
  constructor(init: {
    sessionId: string;
    runId: string;
    chain: EntryChain;
    hold: RunHold;
    store: object | null;
    room?: () => SessionRoom | null;
  }) {
    this.sessionId = init.sessionId;
    this.#runId = init.runId;
    this.#chain = init.chain;
    this.#hold = init.hold;
    this.#store = init.store;
    this.#room = init.room ?? (() => null);
    this.#options = init.room === undefined ? guardOf(init.hold) : { guard: { ...init.hold.guard, ...UNLIMITED } };
  }

  get room(): SessionRoom | null {
    return this.#room();
  }

  get lease(): RunLease | null {
    return this.#hold.lease ?? null;
  }

  append(drafts: readonly EntryDraft[]): Promise<ChainedEntries> {
    if (this.#ended) return Promise.reject(this.#endedError());
    return this.#chain.append(drafts, this.#options);
  }

  async end(outcome: RunOutcome): Promise<void> {
    if (this.#ended) throw this.#endedError();
    this.#ended = true;
    try {
      await this.#chain.append([{ type: "run", runId: this.#runId, ...outcome }], this.#options);
      await this.#hold.finish(outcome.phase);
    } catch (error) {
      await this.#hold.letGo().catch(() => {});
      throw error;
    }
  }

  async abandon(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#hold.letGo();
  }

  origin(): Omit<TranscriptOrigin, "length"> | null {
    const entryId = this.#chain.lastId;
    if (this.#store === null || entryId === null) return null;
    return { store: this.#store, sessionId: this.sessionId, entryId };
  }

  #endedError(): SessionError {
    return new SessionError("RUN_ENDED", `Run ${this.#runId} has ended and takes no more entries.`);
  }
}

/** Appends to the chain while the hold is the session's. A first append may carry any number of entries. */
export function appendHeld(
  chain: EntryChain,
  hold: RunHold,
  drafts: readonly EntryDraft[],
  options: Pick<ChainOptions, "verbatim" | "beside"> = {},
): Promise<ChainedEntries> {
  return chain.append(drafts, { ...options, ...guardOf(hold) });
}

function guardOf({ guard }: RunHold): Pick<AppendOptions, "guard"> {
  return guard === null ? {} : { guard };
}
