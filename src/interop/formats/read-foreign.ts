import { checkArgument, isObject, isStream } from "../../session/check-arguments.ts";
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
  /** The number of the last line that the reader got. */
  #number = 0;
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
    else for (const line of this.#lines.take(piece)) this.#read(line);
  }

  /** The file rests: what the program has ended is whole, but for a line without its end. */
  settle(): void {
    this.#do(() => this.#reader.settle?.());
  }

  /** Whether something went on after the file rested, so that it must be read anew. */
  get reopened(): boolean {
    return this.#reader.reopened === true;
  }

  /** The file has ended. */
  end(): void {
    if (this.#document !== null) {
      const document = documentOf(Buffer.concat(this.#document), this.report);
      if (document !== null) this.#read(document);
    } else for (const line of this.#lines.end()) this.#read(line);
    this.#do(() => this.#reader.end());
  }

  /** A reader must not fail for what a line says; where one does, that costs the line and not the import. */
  #read(line: ForeignLine): void {
    this.#number = line.number;
    this.#do(() => this.#reader.line(line));
  }

  #do(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.report.lose(this.#number, `the reader failed: ${(error as Error).message}`);
    }
  }
}

/** Reads a foreign session from the bytes of its file; null where there is none in it. */
export async function readForeign(
  format: ForeignFormat,
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  path: string | null = null,
): Promise<ForeignReading | null> {
  checkArgument(
    isObject(format) && typeof format.read === "function",
    format,
    "readForeign",
    'a format, such as foreignFormat("pi")',
  );
  checkArgument(isStream(source), source, "readForeign", "the bytes of a file, in pieces");
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
 * - A line that is not UTF-8, not JSON, no object, nested deeper than 1,000 levels or longer than 256 MiB is one loss in the
 *   report, not a failure.
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

/** How deep a line may nest: readers and `JSON.stringify` go down level by level, and a stack has an end. */
const DEPTH_MAX = 1000;
const [QUOTE, BACKSLASH, BRACE, BRACKET, BRACE_END, BRACKET_END] = [0x22, 0x5c, 0x7b, 0x5b, 0x7d, 0x5d];

/** Whether a JSON text nests deeper than so many levels. */
function nestsDeeper(bytes: Buffer, levels: number): boolean {
  if (bytes.length <= 2 * levels) return false;
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      if (at < 0) return false;
    } else if (byte === BRACE || byte === BRACKET) {
      if (++depth > levels) return true;
    } else if (byte === BRACE_END || byte === BRACKET_END) depth--;
  }
  return false;
}

/** Where the quotation mark is that ends a string; -1 where there is none. */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end >= 0; end = bytes.indexOf(QUOTE, end + 1)) {
    let escapes = 0;
    while (bytes[end - 1 - escapes] === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return end;
  }
  return -1;
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
  if (nestsDeeper(bytes, DEPTH_MAX)) return `it nests deeper than ${DEPTH_MAX} levels`;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { text, value: value as JsonValue } : "it is no JSON object";
  } catch {
    return "it is cut off or not JSON";
  }
}
