/** A line that could not be read, and why. */
export interface LostLine {
  /** Counted from 1; 0 if the whole file is lost. */
  readonly line: number;
  readonly reason: string;
}

/** How many lost lines a report lists; further ones are only counted. */
const LOST_NAMED_MAX = 100;

/** How many kinds of lines a report lists, and the maximum length of each name; further kinds are counted as one. */
const KINDS_NAMED_MAX = 50;
const KIND_CHARACTERS_MAX = 80;
const OTHER_KINDS = "(others)";

/** The result of reading a foreign file. Every line is counted in exactly one of mapped, kept, doubled and lost. */
export class ReadReport {
  /** Lines that became entries, or a part of one. */
  mapped = 0;
  /** Lines without a counterpart, kept verbatim. */
  kept = 0;
  /** Kept lines that are too large for one entry. */
  tooLarge = 0;
  /** Duplicates of earlier lines. */
  doubled = 0;
  /** Lines that could not be read. */
  lost = 0;
  /** The first 100 lost lines. */
  readonly lostLines: LostLine[] = [];
  /** For each unknown kind, how many lines or parts of lines have it. They are kept verbatim. */
  readonly unknownKinds: Map<string, number> = new Map();

  lose(line: number, reason: string): void {
    this.lost++;
    if (this.lostLines.length < LOST_NAMED_MAX) this.lostLines.push({ line, reason });
  }

  /** Counts a line of an unknown kind; kinds that are empty or not a string are counted under one name. */
  countUnknown(kind: unknown, count = 1): void {
    const text = typeof kind === "string" && kind !== "" ? kind : "(none)";
    // The name is printed: control characters in a file must not reach the terminal.
    const name = text.slice(0, KIND_CHARACTERS_MAX).replaceAll(/[^\w ./:()-]/g, "?");
    const known = this.unknownKinds.has(name) || this.unknownKinds.size < KINDS_NAMED_MAX;
    const counted = known ? name : OTHER_KINDS;
    this.unknownKinds.set(counted, (this.unknownKinds.get(counted) ?? 0) + count);
  }

  get lines(): number {
    return this.mapped + this.kept + this.doubled + this.lost;
  }

  /** Adds the counts of another report. */
  add(other: ReadReport): void {
    for (const field of ["mapped", "kept", "tooLarge", "doubled"] as const) this[field] += other[field];
    const unnamed = other.lost - other.lostLines.length;
    for (const { line, reason } of other.lostLines) this.lose(line, reason);
    this.lost += unnamed;
    for (const [kind, count] of other.unknownKinds) this.countUnknown(kind, count);
  }
}

/** The result of writing a session in a foreign format. */
export class WriteReport {
  /** Entries that were written. */
  written = 0;
  /** Lines that an import had kept verbatim and that were written back. */
  verbatim = 0;
  /** Texts that look like secrets. They are part of the output unless it was sanitized. */
  secrets = 0;
  /** Entries that the format cannot hold, by type. */
  readonly omitted: Map<string, number> = new Map();
  /** What to know before the session is continued in the other program. */
  readonly notes: Set<string> = new Set();

  omit(type: string): void {
    this.omitted.set(type, (this.omitted.get(type) ?? 0) + 1);
  }
}
