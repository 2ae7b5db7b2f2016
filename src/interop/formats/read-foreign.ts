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

/** The content of a foreign file. */
export interface ForeignReading extends ForeignSession {
  /** Further sessions in the file, such as those of sub-agents. */
  readonly others: readonly ForeignSession[];
  readonly report: ReadReport;
}

/** Parses one foreign file from pieces of bytes. The caller takes complete entries from `logs`. */
export class ForeignFileParser implements ForeignSink {
  readonly report: ReadReport = new ReadReport();
  readonly logs: ForeignLog[] = [];
  readonly #format: ForeignFormat;
  readonly #lines: LineSplitter = new LineSplitter(this.report);
  readonly #reader: ForeignReader;
  /** The number of the last line given to the reader. */
  #number = 0;
  /** The pieces of a document so far; null if the format has lines. */
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

  /** Parses the next bytes of the file. The caller may reuse their buffer. */
  write(piece: Uint8Array): void {
    if (this.#document !== null) this.#document.push(Buffer.from(piece));
    else for (const line of this.#lines.split(piece)) this.#read(line);
  }

  /** Called when the file has been idle: emits buffered entries that are finished. A line without its newline stays buffered. */
  flush(): void {
    this.#catchFailure(() => this.#reader.flush?.());
  }

  /** True if an entry continued after `flush` had emitted it, so that the file must be read again. */
  get reopened(): boolean {
    return this.#reader.reopened === true;
  }

  /** Called at the end of the file: parses an unfinished last line and emits all buffered entries. */
  end(): void {
    if (this.#document !== null) {
      const document = documentOf(Buffer.concat(this.#document), this.report);
      if (document !== null) this.#read(document);
    } else for (const line of this.#lines.end()) this.#read(line);
    this.#catchFailure(() => this.#reader.end());
  }

  /** If the reader throws, although it must not, only the line is lost and the import continues. */
  #read(line: ForeignLine): void {
    this.#number = line.number;
    this.#catchFailure(() => this.#reader.line(line));
  }

  #catchFailure(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.report.lose(this.#number, `the reader failed: ${(error as Error).message}`);
    }
  }
}

/** Reads a foreign file from its bytes; null if it holds no session. */
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
  const parser = new ForeignFileParser(format, path);
  for await (const piece of source) parser.write(piece);
  parser.end();
  // Copies, because drafts marked by `giveDraft` are not checked again, and the caller may change these.
  const entriesOf = (log: ForeignLog): ForeignDraft[] => log.take().map((draft) => ({ ...draft }));
  const [main, ...others] = parser.logs.map((log) => ({ header: log.header, entries: entriesOf(log) }));
  return main === undefined ? null : { ...main, others, report: parser.report };
}

const NEWLINE = 10;
const CARRIAGE_RETURN = 13;
const BYTE_ORDER_MARK = "\ufeff";

/** Maximum bytes of one line; a longer one is lost. */
const LINE_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Splits a stream of bytes into lines and parses them.
 *
 * - `\n` or `\r\n` ends a line; empty lines are skipped, but count for line numbers.
 * - A line that is not UTF-8, not JSON, no object, nested deeper than 1,000 levels or longer than 256 MiB is counted as lost
 *   in the report; it is not an error.
 */
class LineSplitter {
  readonly #report: ReadReport;
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #number = 0;
  #wholeBytes = 0;

  constructor(report: ReadReport) {
    this.#report = report;
  }

  /** The total bytes of all complete lines: the position at which a later reader continues. */
  get wholeBytes(): number {
    return this.#wholeBytes;
  }

  /** Yields the lines that end in this piece. */
  *split(piece: Uint8Array): Generator<ForeignLine, void, undefined> {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, from)) {
      this.#buffer(piece.subarray(from, end));
      from = end + 1;
      this.#wholeBytes += this.#pendingBytes + 1;
      const line = this.#finishLine();
      if (line !== null) yield line;
    }
    this.#buffer(Buffer.from(piece.subarray(from)));
  }

  /** Yields the text after the last newline as the last line; for a file that no longer grows. */
  *end(): Generator<ForeignLine, void, undefined> {
    if (this.#pendingBytes === 0) return;
    const line = this.#finishLine();
    if (line !== null) yield line;
  }

  #buffer(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#pendingBytes += bytes.length;
    if (this.#pendingBytes > LINE_BYTES_MAX) this.#pending = [];
    else this.#pending.push(bytes);
  }

  #finishLine(): ForeignLine | null {
    this.#number++;
    const [only] = this.#pending;
    const bytes = only !== undefined && this.#pending.length === 1 ? asBuffer(only) : Buffer.concat(this.#pending);
    const tooLong = this.#pendingBytes > LINE_BYTES_MAX;
    this.#pending = [];
    this.#pendingBytes = 0;
    const parsed = tooLong ? `it is longer than ${LINE_BYTES_MAX} bytes` : parse(bytes, this.#number === 1);
    if (parsed === null) return null;
    if (typeof parsed === "string") {
      this.#report.lose(this.#number, parsed);
      return null;
    }
    return { number: this.#number, ...parsed };
  }
}

/** The whole document as one line; null, and a loss in the report, if it is invalid. */
function documentOf(bytes: Uint8Array, report: ReadReport): ForeignLine | null {
  const parsed = parse(Buffer.from(bytes), true) ?? "it is empty";
  if (typeof parsed !== "string") return { number: 1, ...parsed };
  report.lose(1, parsed);
  return null;
}

/** How deep a line may nest: readers and `JSON.stringify` are recursive and would overflow the stack. */
const DEPTH_MAX = 1000;
const [QUOTE, BACKSLASH, BRACE, BRACKET, BRACE_END, BRACKET_END] = [0x22, 0x5c, 0x7b, 0x5b, 0x7d, 0x5d];

/** Whether a JSON text nests deeper than `levels`. */
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

/** The position of the quotation mark that ends a string; -1 if there is none. */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end >= 0; end = bytes.indexOf(QUOTE, end + 1)) {
    let escapes = 0;
    while (bytes[end - 1 - escapes] === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return end;
  }
  return -1;
}

/** The same bytes as a Buffer, without copying. */
function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

/** The parsed line, or a sentence that says why it is invalid, or null if it is empty. */
function parse(bytes: Buffer, first: boolean): { readonly text: string; readonly value: JsonValue } | string | null {
  if (!isUtf8(bytes)) return "it is not UTF-8";
  const whole = bytes.at(-1) === CARRIAGE_RETURN ? bytes.subarray(0, -1) : bytes;
  const decoded = whole.toString("utf8");
  const text = first && decoded.startsWith(BYTE_ORDER_MARK) ? decoded.slice(1) : decoded;
  if (text.trim() === "") return null;
  if (nestsDeeper(bytes, DEPTH_MAX)) return `it nests deeper than ${DEPTH_MAX} levels`;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null
      ? { text, value: value as JsonValue }
      : "it is not a JSON object";
  } catch {
    return "it is cut off or not JSON";
  }
}
