import { type Entry, isNode, STAMP_FIELDS } from "../../session/log/entry.ts";
import { giveDraft } from "../../session/log/draft.ts";
import { isTimestamp } from "../../session/log/header.ts";
import { isName } from "../../session/id.ts";
import { isReservedId } from "../../session/log/open-runs.ts";
import { ID_CHARACTERS_MAX } from "../../session/limits.ts";
import type {
  ForeignBody,
  ForeignDraft,
  ForeignEntry,
  ForeignHeader,
  ForeignLine,
  ForeignLogSink,
  FormatName,
} from "./foreign-format.ts";
import { digest } from "./foreign-id.ts";
import { type ReadReport, WriteReport } from "./foreign-report.ts";
import { keptBodies } from "./kept-line.ts";

/** Builds the log of one session while it is read: attaches entries to the tree and buffers them as drafts until `take`. */
export class ForeignLog implements ForeignLogSink {
  readonly header: ForeignHeader;
  readonly createdAt: string;
  readonly #format: FormatName;
  readonly #report: ReadReport;
  /** Required by `FindRest` but never read: the losses of converting back do not matter during an import. */
  readonly #ignoredReport = new WriteReport();
  /** From a foreign id to the foreign id that it is an alias of. */
  readonly #aliases = new Map<string, string>();
  /** For each foreign id, the entry that its next child is attached to: the last line kept after it, if there is one. */
  readonly #attachPoints = new Map<string, string | null>();
  /** The foreign id that the leaf belongs to; null while only lines without an id were kept. */
  #leafOwner: string | null = null;
  /** The entry that roots are attached to: the last line kept before the first root, or null. */
  #rootAttachPoint: string | null = null;
  /** The length of the text that each id was read from, to recognize duplicates. */
  readonly #lengths = new Map<string, number>();
  /** How often each text without an id was kept. */
  readonly #repeated = new Map<string, number>();
  #leafId: string | null = null;
  #moves = 0;
  #time: string;
  #drafts: ForeignDraft[] = [];

  constructor(format: FormatName, header: ForeignHeader, report: ReadReport) {
    this.header = header;
    this.#format = format;
    this.#report = report;
    this.#time = timestampOf(header.createdAt) ?? new Date(0).toISOString();
    this.createdAt = this.#time;
  }

  get leafId(): string | null {
    return this.#leafId;
  }

  has(foreignId: string): boolean {
    return this.#attachPoints.has(this.#resolveAlias(foreignId));
  }

  /** Removes and returns the drafts added since the last call. */
  take(): ForeignDraft[] {
    const drafts = this.#drafts;
    this.#drafts = [];
    return drafts;
  }

  get moves(): number {
    return this.#moves;
  }

  add({ id, parentId, time, body, rest, between }: ForeignEntry, lines: readonly ForeignLine[]): void {
    if (this.#isDuplicate(id, lines)) return;
    const draft = this.#draftOf(id, parentId, time, body);
    const importable = isImportable(body);
    const extra = importable ? rest?.(draft as unknown as Entry, this.#ignoredReport) : undefined;
    const whole = extra === undefined ? draft : { foreign: { [this.#format]: extra }, ...draft };
    if (!importable || !isEntryId(id) || !giveDraft(whole)) {
      for (const [index, line] of lines.entries()) this.keep(line, index === 0 ? { id, parentId, time } : { time });
      return;
    }
    this.#report.mapped += lines.length;
    this.#lengths.set(id, lengthOf(lines));
    const owner = between === true ? this.#leafOwner : null;
    this.#push(whole, owner !== null);
    if (owner !== null) this.alias(id, owner);
  }

  keep(line: ForeignLine, about: KeptLine = {}): void {
    const { parentId, time } = about;
    const id = about.id !== undefined && isEntryId(about.id) ? about.id : this.#idOfText(line.text);
    if (this.#isDuplicate(id, [line])) return;
    this.#report.kept++;
    this.#lengths.set(id, line.text.length);
    const bodies = keptBodies(this.#format, line.text);
    if (bodies.length > 1) this.#report.tooLarge++;
    bodies.forEach((body, index) => {
      const first = index === 0;
      const draft = this.#draftOf(first ? id : `${id}.${index}`, first ? parentId : undefined, time, body);
      giveDraft(draft);
      this.#push(draft, !first || about.id === undefined);
    });
  }

  move(id: string, foreignId: string | null, line: ForeignLine): void {
    if (this.#isDuplicate(id, [line])) return;
    this.#report.mapped++;
    this.#lengths.set(id, line.text.length);
    this.alias(id, foreignId);
    this.#moveLeaf(isEntryId(id) ? id : this.#idOfText(line.text), this.#parentFor(foreignId));
    this.#leafOwner = foreignId === null ? null : this.#resolveAlias(foreignId);
  }

  alias(foreignId: string, knownId: string | null): void {
    if (knownId === null) this.#attachPoints.set(foreignId, this.#rootAttachPoint);
    else if (this.#resolveAlias(knownId) !== this.#resolveAlias(foreignId))
      this.#aliases.set(this.#resolveAlias(foreignId), this.#resolveAlias(knownId));
  }

  /** The id of the entry that a node with this foreign parent is attached to. */
  #parentFor(parentId: string | null | undefined): string | null {
    if (parentId === null) return this.#rootAttachPoint;
    // An unknown parent is treated as undefined: the entry is attached to the leaf.
    const parent = parentId === undefined ? undefined : this.#attachPoints.get(this.#resolveAlias(parentId));
    return parent === undefined ? this.#leafId : parent;
  }

  /** Returns true if the id was read before. Counts a duplicate; a line with another text is kept without its id. */
  #isDuplicate(id: string, lines: readonly ForeignLine[]): boolean {
    const length = this.#lengths.get(id);
    if (length === undefined) return false;
    if (length === lengthOf(lines)) this.#report.doubled += lines.length;
    else for (const line of lines) this.keep(line);
    return true;
  }

  #draftOf(id: string, parentId: string | null | undefined, time: unknown, body: ForeignBody): ForeignDraft {
    const parent = isNode(body) ? this.#parentFor(parentId) : this.#leafId;
    // The spread comes last: with fields after it, V8 in Node 20 takes twenty times longer.
    return { id, parentId: parent, timestamp: timestampOf(time) ?? this.#time, ...body };
  }

  /** `inside`: the draft has no foreign id, so it is inserted between the previous entry and the children of that entry. */
  #push(draft: ForeignDraft, inside = false): void {
    const { id, parentId, timestamp } = draft;
    this.#time = timestamp;
    if (isNode(draft)) this.#moveLeaf(`${id}.leaf`, parentId);
    this.#drafts.push(draft);
    if (!isNode(draft)) return;
    this.#leafId = id;
    this.#attachPoints.set(id, id);
    if (!inside) this.#leafOwner = id;
    else if (this.#leafOwner === null) this.#rootAttachPoint = id;
    else this.#attachPoints.set(this.#leafOwner, id);
  }

  #moveLeaf(id: string, targetId: string | null): void {
    if (targetId === this.#leafId) return;
    if (this.#leafId !== null) this.#moves++;
    this.#drafts.push({ type: "leaf", targetId, id, timestamp: this.#time, parentId: this.#leafId });
    this.#leafId = targetId;
  }

  /**
   * Resolves an alias; an id that is not an alias resolves to itself. Shortens the chain on the way (path compression): a file
   * may chain a hundred thousand aliases and look up the first of them in every line.
   */
  #resolveAlias(foreignId: string): string {
    let id = foreignId;
    for (let next = this.#aliases.get(id); next !== undefined; next = this.#aliases.get(id)) {
      const beyond = this.#aliases.get(next);
      if (beyond === undefined) return next;
      this.#aliases.set(id, beyond);
      id = beyond;
    }
    return id;
  }

  /** An id derived from the text and from how often that text was kept before, so repeated imports give the same ids. */
  #idOfText(text: string): string {
    const hash = digest(text).slice(0, 24);
    const before = this.#repeated.get(hash) ?? 0;
    this.#repeated.set(hash, before + 1);
    return before === 0 ? `line.${hash}` : `line.${hash}.${before + 1}`;
  }
}

/** The id, parent and time of a kept line. */
type KeptLine = NonNullable<Parameters<ForeignLogSink["keep"]>[1]>;

function lengthOf(lines: readonly ForeignLine[]): number {
  return lines.reduce((sum, { text }) => sum + text.length, 0);
}

/** The entry types that a file may add to a log. Runs, approvals and questions are not among them. */
const IMPORTABLE_TYPES: ReadonlySet<string> = new Set<ForeignBody["type"]>([
  "message",
  "compaction",
  "branch_summary",
  "custom_message",
  "custom",
  "thinking_level_change",
  "model_change",
  "variables",
  "label",
  "session_info",
  "trailer",
]);

/** Checks at runtime, whatever the reader's types promise, that the type is importable and no stamp field is set. */
function isImportable(body: ForeignBody): boolean {
  if (!IMPORTABLE_TYPES.has(body.type)) return false;
  for (const field of STAMP_FIELDS) if (field in body) return false;
  return true;
}

function isEntryId(id: string): boolean {
  return id.length < ID_CHARACTERS_MAX - 16 && isName(id) && !isReservedId(id);
}

const AHEAD_MAX_MS = 24 * 60 * 60 * 1000;

/** The value as a timestamp of a log; null if invalid, or more than a day ahead (it would always sort as the newest). */
export function timestampOf(value: unknown): string | null {
  if (isTimestamp(value)) return Date.parse(value) > Date.now() + AHEAD_MAX_MS ? null : value;
  if (typeof value !== "string" && typeof value !== "number") return null;
  const time = new Date(value);
  if (Number.isNaN(time.getTime()) || time.getTime() > Date.now() + AHEAD_MAX_MS) return null;
  const text = time.toISOString();
  return isTimestamp(text) ? text : null;
}
