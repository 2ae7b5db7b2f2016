/** A line that could not be read, and why. */
export interface LostLine {
  /** Counted from 1; 0 where all of the file is lost. */
  readonly line: number;
  readonly reason: string;
}

/** How many lost lines a report names; the others are only counted. */
const LOST_NAMED_MAX = 100;

/** How many kinds of lines a report names, and how much of each name; other kinds are counted together. */
const KINDS_NAMED_MAX = 50;
const KIND_CHARACTERS_MAX = 80;
const OTHER_KINDS = "(others)";

/** What became of the lines of a foreign file. Every line is counted once. */
export class ReadReport {
  /** Lines that became entries, or a part of one. */
  mapped = 0;
  /** Lines that have no counterpart and are kept verbatim. */
  kept = 0;
  /** Of those kept, the ones that are too large for an entry. */
  tooLarge = 0;
  /** Lines that repeat an earlier one. */
  doubled = 0;
  /** Lines that could not be read. */
  lost = 0;
  /** The first of them. */
  readonly lostLines: LostLine[] = [];
  /** How many lines, or parts of lines, are of each kind that this version does not know. They are kept all the same. */
  readonly unknownKinds: Map<string, number> = new Map();

  lose(line: number, reason: string): void {
    this.lost++;
    if (this.lostLines.length < LOST_NAMED_MAX) this.lostLines.push({ line, reason });
  }

  /** Counts a line of a kind that is not known; a kind that is no text, or is empty, counts as one. */
  meet(kind: unknown, count = 1): void {
    const text = typeof kind === "string" && kind !== "" ? kind : "(none)";
    // It is printed: a file cannot write to a terminal by way of it.
    const name = text.slice(0, KIND_CHARACTERS_MAX).replaceAll(/[^\w ./:()-]/g, "?");
    const known = this.unknownKinds.has(name) || this.unknownKinds.size < KINDS_NAMED_MAX;
    const counted = known ? name : OTHER_KINDS;
    this.unknownKinds.set(counted, (this.unknownKinds.get(counted) ?? 0) + count);
  }

  get lines(): number {
    return this.mapped + this.kept + this.doubled + this.lost;
  }

  /** Adds what another report counted. */
  add(other: ReadReport): void {
    for (const field of ["mapped", "kept", "tooLarge", "doubled"] as const) this[field] += other[field];
    const unnamed = other.lost - other.lostLines.length;
    for (const { line, reason } of other.lostLines) this.lose(line, reason);
    this.lost += unnamed;
    for (const [kind, count] of other.unknownKinds) this.meet(kind, count);
  }
}

/** What became of the entries of a session that was written in a foreign format. */
export class WriteReport {
  /** Entries that the format holds. */
  written = 0;
  /** Lines that were kept verbatim by an import and came out again. */
  verbatim = 0;
  /** Texts in it that look like secrets; they are in what is written unless it was sanitized. */
  secrets = 0;
  /** Entries that the format cannot hold, by type. */
  readonly left: Map<string, number> = new Map();

  leave(type: string): void {
    this.left.set(type, (this.left.get(type) ?? 0) + 1);
  }
}
