import type { ForeignFormat, ForeignHeader, ForeignLogSink, ForeignReader, ForeignSink } from "./foreign-format.ts";
import type { ForeignDraft } from "./foreign-format.ts";
import { documentOf, ForeignLines } from "./foreign-lines.ts";
import { ForeignLog } from "./foreign-log.ts";
import { ReadReport } from "./foreign-report.ts";

/** A session that was read from a foreign file. */
export interface ForeignSession {
  readonly header: ForeignHeader;
  readonly entries: readonly ForeignDraft[];
}

/** What was read from a foreign file. */
export interface ForeignReading extends ForeignSession {
  /** Other sessions that the file holds, as those of sub-agents. */
  readonly others: readonly ForeignSession[];
  readonly report: ReadReport;
}

/** Reads one foreign file piece by piece; what became whole is taken from its logs. */
export class ForeignIntake implements ForeignSink {
  readonly report: ReadReport = new ReadReport();
  readonly logs: ForeignLog[] = [];
  readonly #format: ForeignFormat;
  readonly #lines: ForeignLines = new ForeignLines(this.report);
  readonly #reader: ForeignReader;
  /** All of a document; null where the format has lines. */
  readonly #document: Uint8Array[] | null;

  constructor(format: ForeignFormat, path: string | null) {
    this.#format = format;
    this.#reader = format.read(this, path);
    this.#document = format.unit === "document" ? [] : null;
  }

  begin(header: ForeignHeader): ForeignLogSink {
    const log = new ForeignLog(this.#format.name, header, this.report);
    this.logs.push(log);
    return log;
  }

  /** Takes the next bytes of the file. */
  take(piece: Uint8Array): void {
    if (this.#document !== null) this.#document.push(piece);
    else for (const line of this.#lines.take(piece)) this.#reader.line(line);
  }

  /** The file rests: what was held back is whole, but for a line without its end. */
  rest(): void {
    this.#reader.rest();
  }

  /** The file has ended. */
  end(): void {
    if (this.#document !== null) {
      const document = documentOf(Buffer.concat(this.#document), this.report);
      if (document !== null) this.#reader.line(document);
    } else for (const line of this.#lines.end()) this.#reader.line(line);
    this.#reader.rest();
  }
}

/** Reads a foreign session from the bytes of its file; null where there is none in it. */
export async function readForeign(
  format: ForeignFormat,
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  path: string | null = null,
): Promise<ForeignReading | null> {
  const intake = new ForeignIntake(format, path);
  for await (const piece of source) intake.take(piece);
  intake.end();
  // Copies, as the drafts of a log were given away, and what a caller does to these is to be checked.
  const entriesOf = (log: ForeignLog): ForeignDraft[] => log.take().map((draft) => ({ ...draft }));
  const [main, ...others] = intake.logs.map((log) => ({ header: log.header, entries: entriesOf(log) }));
  return main === undefined ? null : { ...main, others, report: intake.report };
}
