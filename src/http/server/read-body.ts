import { setTimeout } from "node:timers/promises";
import type { BodyMeter } from "./body-budget.ts";
import { HttpError } from "./http-error.ts";
import { type JsonBounds, JsonScan } from "./json-scan.ts";

/** Limits for reading a body, and the meter that counts it. */
export interface BodyReading extends JsonBounds {
  readonly bytesMax: number;
  readonly meter: BodyMeter;
}

/** How many bytes of a refused body are still read, and for how long. */
const DISCARDED_BYTES_MAX: number = 32 * 1024 * 1024;
const DISCARD_MS_MAX = 500;

/**
 * Reads the body of a request as JSON; an empty body is an empty object.
 *
 * @throws {HttpError} for a body that is not declared as JSON or not JSON, is too large, nests too deeply or has too many values.
 */
export async function readJson(request: Request, reading: BodyReading): Promise<unknown> {
  checkContentType(request, "application/json");
  const chunks: Uint8Array[] = [];
  const dropChunks = (): void => {
    chunks.length = 0;
  };
  for await (const chunk of streamBody(request, reading, dropChunks)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  return bytes.length === 0 ? {} : parse(bytes);
}

/**
 * The bytes of a body, JSON or JSON lines, counted as they arrive. `onRefused` is called if the body is refused or not read to
 * its end.
 */
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
    // A declared length is trusted only if it exceeds the limit: then the body need not be read.
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
      // Releases the memory and the budget before the rest is discarded; otherwise other requests would be refused meanwhile.
      onRefused();
      meter[Symbol.dispose]();
      if (announced <= DISCARDED_BYTES_MAX) await discard(reader);
    }
    reader.releaseLock();
  }
}

/** The bytes of a body as they arrive, for a reader that keeps none of them in memory. */
export async function* streamRaw(request: Request, bytesMax: number): AsyncIterable<Uint8Array> {
  if (request.body === null) return;
  const announced = Number(request.headers.get("content-length") ?? 0);
  const reader = (request.body as ReadableStream<Uint8Array>).getReader();
  let isWhole = false;
  let bytes = 0;
  try {
    if (announced > bytesMax) throw tooLarge(bytesMax);
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new HttpError("INVALID_REQUEST", "The body ended before it was complete.");
      });
      isWhole = done;
      if (done) return;
      bytes += value.byteLength;
      if (bytes > bytesMax) throw tooLarge(bytesMax);
      yield value;
    }
  } finally {
    if (!isWhole && announced <= DISCARDED_BYTES_MAX) await discard(reader);
    reader.releaseLock();
  }
}

/** Reads and discards the rest of a refused body: closing a connection with unread bytes can lose the answer. */
async function discard(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const rest = async (): Promise<void> => {
    for (let bytes = 0; bytes < DISCARDED_BYTES_MAX; ) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.byteLength;
    }
  };
  const late = new AbortController();
  // An error is ignored: the client has disconnected.
  await Promise.race([
    rest().catch(() => {}),
    setTimeout(DISCARD_MS_MAX, null, { signal: late.signal }).catch(() => {}),
  ]);
  late.abort();
}

/**
 * @throws {HttpError} `UNSUPPORTED_MEDIA_TYPE`. CSRF: a form of another site cannot send these content types without a preflight
 * request.
 */
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
    // The parser's own message quotes the body, which may contain secrets.
    throw new HttpError("INVALID_REQUEST", "The body is not JSON in UTF-8.");
  }
}
