import { Worker } from "node:worker_threads";
import { nextSlice } from "../../../internal/long-work.ts";
import { SessionError } from "../../../session/errors.ts";
import type { Entry } from "../../../session/log/entry.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import { entryText, headTexts, matchOf } from "../../../session/search.ts";
import type { SearchHit, SearchMatch, SessionStore } from "../../../session/store.ts";

const MATCHES_MAX = 3;
const BATCH_ENTRIES = 200;
const BATCH_CHARACTERS = 1024 * 1024;

/** The position of a match in a text. */
interface Span {
  readonly index: number;
  readonly length: number;
}

// The worker's program, as text, so that it is the same in a build and in a test. It receives lists of texts and answers the
// matches.
const PROGRAM = `
const { parentPort, workerData } = require("node:worker_threads");
const pattern = new RegExp(workerData.source, workerData.flags);
const find = (text) => {
  const match = pattern.exec(text);
  return match === null ? null : { index: match.index, length: match[0].length };
};
parentPort.on("message", (texts) => parentPort.postMessage(texts.map(find)));
`;

/**
 * Searches with a regular expression in a worker thread: catastrophic backtracking must not block the server, and only another
 * thread can end it.
 */
export class PatternSearch implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #timer: NodeJS.Timeout;
  #ended: string | null = null;
  #waiting: { resolve(spans: readonly (Span | null)[]): void; reject(error: unknown): void } | null = null;

  constructor(pattern: RegExp, timeoutMs: number) {
    const { source, flags } = pattern;
    const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 };
    this.#worker = new Worker(PROGRAM, { eval: true, workerData: { source, flags }, env: {}, resourceLimits });
    this.#worker.on("message", (spans: readonly (Span | null)[]) => this.#waiting?.resolve(spans));
    this.#worker.on("error", () => this.#end("cannot be evaluated"));
    const late = "takes too long; make it simpler, or search for words";
    this.#timer = setTimeout(() => this.#end(late), timeoutMs);
  }

  /** The matches of the pattern in a session; null if there are none. */
  async searchSession(store: SessionStore, head: SessionHead): Promise<SearchHit | null> {
    const inHead = (await this.#find(headTexts(head))).some((span) => span !== null);
    const matches: SearchMatch[] = [];
    for (let after = -1; matches.length < MATCHES_MAX; ) {
      const batch: { readonly entry: Pick<Entry, "id" | "seq">; readonly text: string }[] = [];
      let characters = 0;
      for await (const entry of store.read(head.header.id, { after, limit: BATCH_ENTRIES })) {
        const text = entryText(entry);
        batch.push({ entry: { id: entry.id, seq: entry.seq }, text });
        characters += text.length;
        if (characters > BATCH_CHARACTERS) break;
      }
      const last = batch.at(-1);
      if (last === undefined) break;
      after = last.entry.seq;
      // Copying the texts to the thread takes as long as reading them.
      await nextSlice(characters);
      for (const [i, span] of (await this.#find(batch.map(({ text }) => text))).entries()) {
        const found = batch[i];
        if (span === null || !found?.text || matches.length === MATCHES_MAX) continue;
        matches.push(matchOf(found.entry, found.text, span));
      }
    }
    return inHead || matches.length > 0 ? { head, matches } : null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    await this.#worker.terminate();
  }

  /** Sends one list at a time, so that the next message is its answer. */
  #find(texts: readonly string[]): Promise<readonly (Span | null)[]> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== null) return reject(refusal(this.#ended));
      this.#waiting = { resolve, reject };
      this.#worker.postMessage(texts);
    });
  }

  #end(why: string): void {
    this.#ended = why;
    this.#waiting?.reject(refusal(why));
    void this.#worker.terminate();
  }
}

function refusal(why: string): SessionError {
  return new SessionError("INVALID_QUERY", `The pattern of the search ${why}.`);
}
