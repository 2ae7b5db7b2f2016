import { setTimeout } from "node:timers/promises";
import type { BodyMeter } from "./body-budget.ts";
import { HttpError } from "./http-error.ts";
import { type JsonBounds, JsonScan } from "./json-scan.ts";

/** How much of a body is read, and who counts it. */
export interface BodyReading extends JsonBounds {
  readonly bytesMax: number;
  readonly meter: BodyMeter;
}

/** How much of a refused body is still taken, and for how long. */
const DISCARDED_BYTES_MAX: number = 32 * 1024 * 1024;
const DISCARD_MS_MAX = 500;

/**
 * The JSON that a request carries; an empty body is an empty object.
 *
 * @throws {HttpError} when it is not declared as JSON, is none, is too large, nests too deep or holds too many values.
 */
export async function readJson(request: Request, reading: BodyReading): Promise<unknown> {
  checkContentType(request, "application/json");
  const chunks: Uint8Array[] = [];
  const forget = (): void => {
    chunks.length = 0;
  };
  for await (const chunk of streamBody(request, reading, forget)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  return bytes.length === 0 ? {} : parse(bytes);
}

/** The bytes that a request carries, JSON or JSON lines, counted as they come. `onRefused` is called when they are not wanted. */
export async function* streamBody(
  request: Request,
  reading: BodyReading,
  onRefused: () => void = () => {},
): AsyncIterable<Uint8Array> {
  if (request.body === null) return;
  const { bytesMax, meter } = reading;
  const announced = Number(request.headers.get("content-length") ?? 0);
  const scan = new JsonScan(reading);
  const reader = (request.body as ReadableStream<Uint8Array>).getReader();
  let bytes = 0;
  let whole = false;
  try {
    // What a client announces is only believed where it is too much; that saves waiting for it.
    if (announced > bytesMax) throw tooLarge(bytesMax);
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new HttpError("INVALID_REQUEST", "The body ended before it was complete.");
      });
      if (done) {
        whole = true;
        await meter.complete(bytes);
        return;
      }
      bytes += value.byteLength;
      if (bytes > bytesMax) throw tooLarge(bytesMax);
      const before = scan.values;
      scan.add(value);
      meter.take(value.byteLength, scan.values - before);
      yield value;
    }
  } finally {
    if (!whole) {
      // What is refused takes up no room while its rest is thrown away, or others would be refused for it.
      onRefused();
      meter[Symbol.dispose]();
      if (announced <= DISCARDED_BYTES_MAX) await discard(reader);
    }
    reader.releaseLock();
  }
}

/** Takes the rest of a refused body off the connection: one that is closed on unread bytes loses the answer. */
async function discard(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const rest = async (): Promise<void> => {
    for (let bytes = 0; bytes < DISCARDED_BYTES_MAX; ) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.byteLength;
    }
  };
  const late = new AbortController();
  // A client that hangs up has nothing more to be told.
  await Promise.race([
    rest().catch(() => {}),
    setTimeout(DISCARD_MS_MAX, null, { signal: late.signal }).catch(() => {}),
  ]);
  late.abort();
}

/** @throws {HttpError} `UNSUPPORTED_MEDIA_TYPE`: a form of another site cannot claim such a type without being asked first. */
export function checkContentType(request: Request, ...types: readonly string[]): void {
  const given = (request.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (types.includes(given)) return;
  throw new HttpError("UNSUPPORTED_MEDIA_TYPE", `Send this request with the content type ${types.join(" or ")}.`);
}

function tooLarge(bytesMax: number): HttpError {
  return new HttpError("BODY_TOO_LARGE", `The body is larger than ${bytesMax} bytes.`);
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    // The parser's own sentence quotes the body, which may hold anything.
    throw new HttpError("INVALID_REQUEST", "The body is not JSON in UTF-8.");
  }
}
