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

/** One session while it is read: hangs what a reader finds on one tree, and hands it on in pieces. */
export class ForeignLog implements ForeignLogSink {
  readonly header: ForeignHeader;
  readonly createdAt: string;
  readonly #format: FormatName;
  readonly #report: ReadReport;
  /** What the program could not say of an entry is of no interest when it comes from there. */
  readonly #unsaid = new WriteReport();
  /** Foreign ids that mean the entry of another one. */
  readonly #aliases = new Map<string, string>();
  /** Where the next child of each foreign id hangs: on its last kept line, if there is one. */
  readonly #tips = new Map<string, string | null>();
  /** The foreign id that the leaf belongs to; null while only lines without one were kept. */
  #leafOwner: string | null = null;
  /** Where a root hangs: on the lines that were kept before the first one. */
  #rootTip: string | null = null;
  /** How long the text of each id was. */
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
    return this.#tips.has(this.#named(foreignId));
  }

  /** Takes what was added since the last time. */
  take(): ForeignDraft[] {
    const drafts = this.#drafts;
    this.#drafts = [];
    return drafts;
  }

  get moves(): number {
    return this.#moves;
  }

  add({ id, parentId, time, body, rest, between }: ForeignEntry, lines: readonly ForeignLine[]): void {
    if (this.#repeats(id, lines)) return;
    const draft = this.#draftOf(id, parentId, time, body);
    const words = isWords(body);
    const unsaid = words ? rest?.(draft as unknown as Entry, this.#unsaid) : undefined;
    const whole = unsaid === undefined ? draft : { foreign: { [this.#format]: unsaid }, ...draft };
    if (!words || !isEntryId(id) || !giveDraft(whole)) {
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
    if (this.#repeats(id, [line])) return;
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
    if (this.#repeats(id, [line])) return;
    this.#report.mapped++;
    this.#lengths.set(id, line.text.length);
    this.alias(id, foreignId);
    this.#leafTo(isEntryId(id) ? id : this.#idOfText(line.text), this.#parentFor(foreignId));
    this.#leafOwner = foreignId === null ? null : this.#named(foreignId);
  }

  alias(foreignId: string, knownId: string | null): void {
    if (knownId === null) this.#tips.set(foreignId, this.#rootTip);
    else if (this.#named(knownId) !== this.#named(foreignId))
      this.#aliases.set(this.#named(foreignId), this.#named(knownId));
  }

  /** The id of the entry that a node with this parent hangs on. */
  #parentFor(parentId: string | null | undefined): string | null {
    if (parentId === null) return this.#rootTip;
    // A parent that is not known counts as none named: the entry goes where the session stands.
    const parent = parentId === undefined ? undefined : this.#tips.get(this.#named(parentId));
    return parent === undefined ? this.#leafId : parent;
  }

  /** Whether an id stands for an earlier line. The same id with another text is kept as a line without an id. */
  #repeats(id: string, lines: readonly ForeignLine[]): boolean {
    const length = this.#lengths.get(id);
    if (length === undefined) return false;
    if (length === lengthOf(lines)) this.#report.doubled += lines.length;
    else for (const line of lines) this.keep(line);
    return true;
  }

  #draftOf(id: string, parentId: string | null | undefined, time: unknown, body: ForeignBody): ForeignDraft {
    const parent = isNode(body) ? this.#parentFor(parentId) : this.#leafId;
    // What is spread comes last: fields after it take V8 of Node 20 twenty times longer.
    return { id, parentId: parent, timestamp: timestampOf(time) ?? this.#time, ...body };
  }

  /** `inside`: it lies between the entry before it and that one's children, as it has no foreign id of its own. */
  #push(draft: ForeignDraft, inside = false): void {
    const { id, parentId, timestamp } = draft;
    this.#time = timestamp;
    if (isNode(draft)) this.#leafTo(`${id}.leaf`, parentId);
    this.#drafts.push(draft);
    if (!isNode(draft)) return;
    this.#leafId = id;
    this.#tips.set(id, id);
    if (!inside) this.#leafOwner = id;
    else if (this.#leafOwner === null) this.#rootTip = id;
    else this.#tips.set(this.#leafOwner, id);
  }

  #leafTo(id: string, targetId: string | null): void {
    if (targetId === this.#leafId) return;
    if (this.#leafId !== null) this.#moves++;
    this.#drafts.push({ type: "leaf", targetId, id, timestamp: this.#time, parentId: this.#leafId });
    this.#leafId = targetId;
  }

  /**
   * The foreign id that this one is an alias of; itself where it is none. Every alias that is passed then points further
   * ahead: a file may hold a chain of a hundred thousand, and look up its beginning in each line.
   */
  #named(foreignId: string): string {
    let id = foreignId;
    for (let next = this.#aliases.get(id); next !== undefined; next = this.#aliases.get(id)) {
      const beyond = this.#aliases.get(next);
      if (beyond === undefined) return next;
      this.#aliases.set(id, beyond);
      id = beyond;
    }
    return id;
  }

  /** The same for the same text at its first, second, … occurrence. */
  #idOfText(text: string): string {
    const hash = digest(text).slice(0, 24);
    const before = this.#repeated.get(hash) ?? 0;
    this.#repeated.set(hash, before + 1);
    return before === 0 ? `line.${hash}` : `line.${hash}.${before + 1}`;
  }
}

/** Where a kept line hangs. */
type KeptLine = NonNullable<Parameters<ForeignLogSink["keep"]>[1]>;

function lengthOf(lines: readonly ForeignLine[]): number {
  return lines.reduce((sum, { text }) => sum + text.length, 0);
}

/** What a file may add to a log: it says nothing that runs, approves or waits. */
const WORDS: ReadonlySet<string> = new Set<ForeignBody["type"]>([
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

/** Whether a body is made of words alone, whatever the types of a reader promise, and says nothing about its own stamp. */
function isWords(body: ForeignBody): boolean {
  if (!WORDS.has(body.type)) return false;
  for (const field of STAMP_FIELDS) if (field in body) return false;
  return true;
}

function isEntryId(id: string): boolean {
  return id.length < ID_CHARACTERS_MAX - 16 && isName(id) && !isReservedId(id);
}

const AHEAD_MAX_MS = 24 * 60 * 60 * 1000;

/** A time as a log has it; null for what is none, or lies in the future and would be the latest for ever. */
export function timestampOf(value: unknown): string | null {
  if (isTimestamp(value)) return Date.parse(value) > Date.now() + AHEAD_MAX_MS ? null : value;
  if (typeof value !== "string" && typeof value !== "number") return null;
  const time = new Date(value);
  if (Number.isNaN(time.getTime()) || time.getTime() > Date.now() + AHEAD_MAX_MS) return null;
  const text = time.toISOString();
  return isTimestamp(text) ? text : null;
}
