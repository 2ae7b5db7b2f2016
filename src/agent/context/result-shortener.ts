import { cutText } from "../../internal/cut-text.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { type Content, type Message, partsOf, textOf } from "../../session/message.ts";
import type { LoopOptions } from "../loop-options.ts";
import type { RunLog } from "../persist/run-log.ts";
import { isKept, keptSince } from "./cache-warmth.ts";
import type { LoopContext } from "./loop-context.ts";

/** Which tool results a run shortens. */
export interface ShortenedResults {
  /** A result is old if it is followed by more than this number of messages (default 20). */
  readonly olderThan?: number;
  /** A result is large if its text has more than this number of characters (default 4,000). */
  readonly largerThan?: number;
}

/** The default values of `ShortenedResults`. */
const SHORTENED_DEFAULTS: Required<ShortenedResults> = { olderThan: 20, largerThan: 4_000 };

const REASON = "an old, large tool result";

/** The parts of a `ResultShortener`. */
export interface ShortenerParts {
  readonly options: LoopOptions;
  readonly context: LoopContext;
  readonly log: RunLog;
  /** Whether the context is so full that a compaction is about to replace its beginning. */
  readonly isFull: () => boolean;
}

/**
 * Replaces old, large tool results by their first and last lines. It edits in batches, and only before a request whose
 * prefix is not cached anyway: the run's model has answered on no branch within the lifetime of its cache, or a compaction is about to
 * rewrite the context.
 */
export class ResultShortener {
  readonly #parts: ShortenerParts;
  readonly #limits: Required<ShortenedResults> | null;
  /** When the run received its last answer; null before the first. */
  #answeredAt: number | null = null;

  constructor(parts: ShortenerParts) {
    this.#parts = parts;
    const { edits } = parts.options;
    this.#limits = edits === undefined ? null : { ...SHORTENED_DEFAULTS, ...edits.toolResults };
  }

  /** Records that an answer was received: the provider has cached the request. */
  answered(): void {
    if (this.#limits !== null) this.#answeredAt = Date.now();
  }

  /** Shortens results if the prefix is not cached; otherwise returns null. */
  shorten(): Promise<void> | null {
    const limits = this.#limits;
    return limits === null ? null : this.#shorten(limits);
  }

  async #shorten({ olderThan, largerThan }: Required<ShortenedResults>): Promise<void> {
    const { context, log } = this.#parts;
    if (this.#answeredAt !== null && !this.#isOver(this.#answeredAt) && !this.#parts.isFull()) return;
    const { rows } = context.answeredRows(olderThan);
    const large = rows.filter(({ message }) => message.role === "tool" && textOf(message.content).length > largerThan);
    if (large.length === 0 || !(await this.#isCold())) return;
    const restored = await log.restoredEntries();
    const edits = new Map<string, Message>();
    for (const { id, message } of large) {
      if (!restored.has(id))
        edits.set(id, { ...message, content: shortened(message.content ?? "", largerThan) } as Message);
    }
    if (edits.size === 0) return;
    if (!log.kept) return context.replaceMessages(edits);
    const drafts = [...edits].map(
      ([targetId, message]): EntryDraft => ({ type: "context_edit", targetId, message, reason: REASON }),
    );
    await log.note(drafts);
  }

  async #isCold(): Promise<boolean> {
    const { options, log, isFull } = this.#parts;
    if (isFull() || this.#answeredAt !== null) return true;
    // Requests on other branches begin like this one, which renews the lifetime of the common prefix.
    return !(await log.hasAnswerSince(keptSince(options.model), options.model));
  }

  #isOver(answeredAt: number): boolean {
    return !isKept(answeredAt, this.#parts.options.model);
  }
}

/** Replaces the text of content that exceeds the limit by its first and last lines; other parts are kept. */
function shortened(content: Content, charactersMax: number): Content {
  const text = firstAndLastLines(textOf(content), charactersMax);
  const others = partsOf(content).filter(({ type }) => type !== "text");
  return others.length === 0 ? text : [{ type: "text", text }, ...others];
}

/** The beginning and the end of a text, cut at line breaks if possible, with a note about the part in between. */
function firstAndLastLines(text: string, charactersMax: number): string {
  const characters = Math.floor(charactersMax / 4);
  const start = text.slice(0, characters);
  const end = text.slice(text.length - characters);
  const [lastBreak, firstBreak] = [start.lastIndexOf("\n"), end.indexOf("\n")];
  // A lone surrogate at a cut is not valid in a request.
  const first = (lastBreak > 0 ? start.slice(0, lastBreak) : start).replace(/[\ud800-\udbff]$/, "");
  const last = (firstBreak >= 0 ? end.slice(firstBreak + 1) : end).replace(/^[\udc00-\udfff]/, "");
  const missing = text.length - first.length - last.length;
  return cutText(`${first}\n[${missing} characters were left out here]\n${last}`, 0, text.length);
}
