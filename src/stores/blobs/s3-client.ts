import { createHash } from "node:crypto";
import { type IncomingMessage, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { setTimeout as wait } from "node:timers/promises";
import type { BlobSource } from "../../session/blob.ts";
import { SessionError, show } from "../../session/errors.ts";

/** The key of an account of S3. */
export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary credentials. */
  readonly sessionToken?: string;
}

/** A bucket of a server. */
export interface S3Place {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly credentials: S3Credentials | (() => Promise<S3Credentials>);
}

/** An object of a bucket, as a listing has it. */
export interface S3Object {
  readonly key: string;
  readonly size: number;
  readonly etag: string;
  /** Milliseconds, by the clock of the server. */
  readonly modifiedAt: number;
}

/** One page of a listing, and the time of the server's clock. */
export interface S3Page {
  readonly objects: readonly S3Object[];
  readonly now: number;
}

interface S3Request {
  readonly method: "GET" | "PUT" | "DELETE";
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly range?: readonly [start: number, end: number];
  readonly body?: BlobSource;
  /** The SHA-256 of the body in hexadecimal, which the server checks. */
  readonly hash?: string;
}

type Signer = typeof import("aws4fetch").AwsV4Signer;

const ATTEMPTS_MAX = 4;
const RETRY_MS = 100;
/** A server that sends and takes nothing for so long does not answer any more. */
const SILENCE_MS_MAX = 30_000;
const ERROR_CHARACTERS_MAX = 4096;
const EMPTY_HASH = createHash("sha256").digest("hex");
/** Errors that another attempt can avoid. */
const PASSING = new Set([408, 429, 500, 502, 503, 504]);

/** The requests to a bucket that blobs need. Each is signed by `aws4fetch`, and repeated if the server fails. */
export class S3Client {
  readonly #place: S3Place;
  #signer: Promise<Signer> | null = null;

  constructor(place: S3Place) {
    this.#place = place;
  }

  /** Stores an object: all of its bytes or none. The body is streamed. */
  async put(key: string, body: BlobSource, hash: string): Promise<void> {
    await drain(await this.#send({ method: "PUT", key, body, hash }));
  }

  /** Removes an object, if it is there. */
  async remove(key: string): Promise<void> {
    await drain(await this.#send({ method: "DELETE", key }));
  }

  /** The bytes of an object from `start` up to `end`; null if there is no such object. */
  async get(key: string, start: number, end: number): Promise<AsyncIterable<Uint8Array> | null> {
    const response = await this.#send({ method: "GET", key, range: [start, end] });
    if (response.statusCode === 404) return drain(response).then(() => null);
    // Some servers ignore a range, or return more than it has.
    const first = /^bytes (\d+)-/.exec(response.headers["content-range"] ?? "")?.[1] ?? "0";
    return cut(response, start - Number(first), end - start);
  }

  /** The objects whose keys begin with a prefix, in the order of their keys. */
  async *list(prefix: string): AsyncGenerator<S3Page> {
    for (let token: string | null = ""; token !== null; ) {
      const query = { "list-type": "2", prefix, ...(token !== "" && { "continuation-token": token }) };
      const response = await this.#send({ method: "GET", query });
      const now = Date.parse(response.headers.date ?? "") || Date.now();
      const text = await textOf(response);
      yield {
        objects: text.split("<Contents>").slice(1).map(objectOf),
        now,
      };
      token = fieldOf(text, "IsTruncated") === "true" ? fieldOf(text, "NextContinuationToken") : null;
    }
  }

  async #send(asked: S3Request): Promise<IncomingMessage> {
    for (let attempt = 1; ; attempt++) {
      const response = await this.#sendOnce(asked).catch((error: unknown) => {
        if (error instanceof SourceError) throw error.cause;
        if (error instanceof SessionError || attempt === ATTEMPTS_MAX) throw this.#failure(asked, error);
        return null;
      });
      const status = response?.statusCode ?? 0;
      const isPassing = response === null || PASSING.has(status);
      if (response !== null && (!isPassing || attempt === ATTEMPTS_MAX)) {
        if (status < 300 || (status === 404 && asked.key !== undefined && asked.method !== "PUT")) return response;
        throw this.#refusal(asked, status, await textOf(response).catch(() => ""));
      }
      response?.destroy();
      await wait(RETRY_MS * 2 ** attempt * (0.5 + Math.random()));
    }
  }

  async #sendOnce({ method, key, query = {}, range, body, hash = EMPTY_HASH }: S3Request): Promise<IncomingMessage> {
    const { endpoint, bucket, region, credentials } = this.#place;
    const url = new URL(`${endpoint.replace(/\/$/, "")}/${bucket}${key === undefined ? "" : `/${key}`}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const { accessKeyId, secretAccessKey, sessionToken } =
      typeof credentials === "function" ? await credentials() : credentials;
    this.#signer ??= loadSigner();
    const Signer = await this.#signer;
    const signed = await new Signer({
      method,
      url: url.href,
      headers: { "x-amz-content-sha256": hash },
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      service: "s3",
      region,
    }).sign();
    const headers: Record<string, string | number> = Object.fromEntries(signed.headers);
    if (range !== undefined) headers.range = `bytes=${range[0]}-${range[1] - 1}`;
    if (method === "PUT") headers["content-length"] = body?.size ?? 0;
    return exchange(signed.url, { method, headers }, body);
  }

  #failure(asked: S3Request, cause: unknown): unknown {
    if (cause instanceof SessionError) return cause;
    return new SessionError(
      "STORE_FAILED",
      `${this.#nameOf(asked)} failed: ${cause instanceof Error ? cause.message : String(cause)}.`,
      { cause },
    );
  }

  #refusal(asked: S3Request, status: number, text: string): SessionError {
    const code = fieldOf(text, "Code") ?? `status ${status}`;
    return new SessionError(
      "STORE_FAILED",
      `${this.#nameOf(asked)} was refused with ${code}: ${fieldOf(text, "Message") ?? "without a message"}`,
    );
  }

  #nameOf({ method, key }: S3Request): string {
    return `The request ${method} ${key === undefined ? "of the list of objects" : show(key)} to bucket ${show(this.#place.bucket)} of S3`;
  }
}

/** Sends a request with a body that is streamed, and resolves to the response once its headers are there. */
function exchange(
  url: URL,
  options: { readonly method: string; readonly headers: Readonly<Record<string, string | number>> },
  body: BlobSource | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sending = (url.protocol === "http:" ? httpRequest : httpsRequest)(url, options);
    sending.setTimeout(SILENCE_MS_MAX, () => sending.destroy(new Error(`no answer within ${SILENCE_MS_MAX} ms`)));
    sending.on("response", resolve);
    sending.on("error", reject);
    write(body, sending).catch((error: unknown) => {
      reject(error);
      sending.destroy();
    });
  });
}

async function write(body: BlobSource | undefined, sending: ReturnType<typeof httpRequest>): Promise<void> {
  try {
    let written = 0;
    for await (const chunk of body?.read() ?? []) {
      if (sending.destroyed) return;
      written += chunk.byteLength;
      await new Promise<void>((resolve) => {
        sending.once("close", resolve);
        sending.write(chunk, () => {
          sending.off("close", resolve);
          resolve();
        });
      });
    }
    const size = body?.size ?? 0;
    if (written !== size) throw new SessionError("STORE_FAILED", `A blob of ${size} bytes came with ${written} bytes.`);
  } catch (cause) {
    throw new SourceError(cause);
  }
  sending.end();
}

/** The bytes to send could not be read, which another attempt does not change. */
class SourceError extends Error {
  constructor(cause: unknown) {
    super("the bytes to send could not be read", { cause });
  }
}

/** A number of bytes of a stream, after those that are skipped. */
async function* cut(stream: AsyncIterable<Uint8Array>, skip: number, length: number): AsyncGenerator<Uint8Array> {
  let [before, left] = [skip, length];
  for await (const chunk of stream) {
    const part = chunk.subarray(before, before + left);
    before = Math.max(0, before - chunk.byteLength);
    left -= part.byteLength;
    if (part.byteLength > 0) yield part;
    if (left <= 0) return;
  }
}

async function drain(response: IncomingMessage): Promise<void> {
  for await (const _ of response);
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response as AsyncIterable<Uint8Array>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** The object of a listing, from the text after its opening tag. */
function objectOf(item: string): S3Object {
  return {
    key: fieldOf(item, "Key") ?? "",
    size: Number(fieldOf(item, "Size")),
    etag: fieldOf(item, "ETag") ?? "",
    modifiedAt: Date.parse(fieldOf(item, "LastModified") ?? ""),
  };
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** The text of the first element with this name. */
function fieldOf(xml: string, name: string): string | null {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]?.slice(0, ERROR_CHARACTERS_MAX);
  if (text === undefined) return null;
  return text.replace(/&(?:#(x?)([0-9a-f]+)|(\w+));/gi, (whole, hex: string, code: string, entity: string) =>
    code === undefined
      ? (ENTITIES[entity] ?? whole)
      : String.fromCodePoint(Number.parseInt(code, hex === "" ? 10 : 16)),
  );
}

async function loadSigner(): Promise<Signer> {
  try {
    return (await import("aws4fetch")).AwsV4Signer;
  } catch (cause) {
    throw new SessionError("DRIVER_MISSING", "Blobs in S3 need the package aws4fetch: npm install aws4fetch.", {
      cause,
    });
  }
}
