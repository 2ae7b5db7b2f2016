/** A line that could not be read, and why. */
export interface LostLine {
  readonly line: number;
  readonly reason: string;
}

/** How many lost lines a report names; the others are only counted. */
const LOST_NAMED_MAX = 100;

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

  lose(line: number, reason: string): void {
    this.lost++;
    if (this.lostLines.length < LOST_NAMED_MAX) this.lostLines.push({ line, reason });
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
