import { isUtf8 } from "node:buffer";
import type {
  ForeignFormat,
  ForeignHeader,
  ForeignLogSink,
  ForeignReader,
  ForeignSink,
  ForeignLine,
  ForeignDraft,
} from "./foreign-format.ts";
import { ForeignLog } from "./foreign-log.ts";
import { ReadReport } from "./foreign-report.ts";
import type { JsonValue } from "../../internal/json.ts";

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

  /** Takes the next bytes of the file; the caller may use them anew. */
  take(piece: Uint8Array): void {
    if (this.#document !== null) this.#document.push(Buffer.from(piece));
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

const NEWLINE = 10;
const CARRIAGE_RETURN = 13;
const BYTE_ORDER_MARK = "\ufeff";

/** The most bytes of one line; a longer one is lost. */
const LINE_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Takes the bytes of a file in pieces and gives its lines as they become whole.
 *
 * - `\n` or `\r\n` ends a line; empty lines are passed over, but counted.
 * - A line that is not UTF-8, not JSON, no object or longer than 256 MiB is one loss in the report, not a failure.
 */
class ForeignLines {
  readonly #report: ReadReport;
  #open: Uint8Array[] = [];
  #openBytes = 0;
  #number = 0;
  #wholeBytes = 0;

  constructor(report: ReadReport) {
    this.#report = report;
  }

  /** How many bytes the lines that were whole have taken: where a reader that comes back goes on. */
  get wholeBytes(): number {
    return this.#wholeBytes;
  }

  /** The lines that end in this piece. */
  *take(piece: Uint8Array): Generator<ForeignLine, void, undefined> {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, from)) {
      this.#hold(piece.subarray(from, end));
      from = end + 1;
      this.#wholeBytes += this.#openBytes + 1;
      const line = this.#close();
      if (line !== null) yield line;
    }
    this.#hold(Buffer.from(piece.subarray(from)));
  }

  /** What stands after the last newline, as the last line; for a file that does not grow. */
  *end(): Generator<ForeignLine, void, undefined> {
    if (this.#openBytes === 0) return;
    const line = this.#close();
    if (line !== null) yield line;
  }

  #hold(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#openBytes += bytes.length;
    if (this.#openBytes > LINE_BYTES_MAX) this.#open = [];
    else this.#open.push(bytes);
  }

  #close(): ForeignLine | null {
    this.#number++;
    const [only] = this.#open;
    const bytes = only !== undefined && this.#open.length === 1 ? asBuffer(only) : Buffer.concat(this.#open);
    const tooLong = this.#openBytes > LINE_BYTES_MAX;
    this.#open = [];
    this.#openBytes = 0;
    const parsed = tooLong ? `it is longer than ${LINE_BYTES_MAX} bytes` : parse(bytes, this.#number === 1);
    if (parsed === null) return null;
    if (typeof parsed === "string") {
      this.#report.lose(this.#number, parsed);
      return null;
    }
    return { number: this.#number, ...parsed };
  }
}

/** All of a document as one line; null where it is none, which is a loss. */
function documentOf(bytes: Uint8Array, report: ReadReport): ForeignLine | null {
  const parsed = parse(Buffer.from(bytes), true) ?? "it is empty";
  if (typeof parsed !== "string") return { number: 1, ...parsed };
  report.lose(1, parsed);
  return null;
}

/** The same bytes, not a copy of them. */
function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

/** What a line says, what is wrong with it, or null when it is empty. */
function parse(bytes: Buffer, first: boolean): { readonly text: string; readonly value: JsonValue } | string | null {
  if (!isUtf8(bytes)) return "it is not UTF-8";
  const whole = bytes.at(-1) === CARRIAGE_RETURN ? bytes.subarray(0, -1) : bytes;
  const decoded = whole.toString("utf8");
  const text = first && decoded.startsWith(BYTE_ORDER_MARK) ? decoded.slice(1) : decoded;
  if (text.trim() === "") return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { text, value: value as JsonValue } : "it is no JSON object";
  } catch {
    return "it is cut off or not JSON";
  }
}
