import { dropEnd } from "../../internal/trim-text.ts";
import { encodeSegment } from "../path-segment.ts";
import { ClientError, errorOf } from "./client-error.ts";
import type { Page } from "../wire.ts";

/** A `fetch` function: the runtime's own, or a replacement. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Options of every call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** The part of a browser's `XMLHttpRequest` that an upload uses. */
interface BrowserRequest {
  readonly status: number;
  readonly responseText: string;
  readonly upload: { onprogress: ((event: { readonly loaded: number; readonly total: number }) => void) | null };
  onload: (() => void) | null;
  onerror: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getResponseHeader(name: string): string | null;
  send(body: unknown): void;
  abort(): void;
}

/** How many bytes of an upload were sent. */
export interface UploadProgress {
  readonly sent: number;
  readonly total: number;
}

/** Options of an upload. */
export interface UploadOptions extends CallOptions {
  /** Called as bytes are sent; outside of browsers, once at the end. */
  readonly onProgress?: (progress: UploadProgress) => void;
}

/** The server's address and token, and the `fetch` to use. */
export interface TransportInit {
  readonly url: string | URL;
  readonly token?: string;
  readonly fetch?: Fetch;
}

/** A request to the server. */
export interface Ask extends CallOptions {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** A list becomes one parameter for each item; undefined values are left out. */
  readonly query?: object;
  /** Sent as JSON. */
  readonly json?: object;
  /** Sent unchanged, with this content type. */
  readonly body?: { readonly type: string; readonly content: string | Uint8Array | Blob };
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends requests to a server, and throws a `ClientError` for an error answer. */
export class Transport {
  readonly #url: string;
  readonly #token: string | undefined;
  readonly #fetch: Fetch;

  constructor(init: TransportInit) {
    const { url, token, fetch: given } = checkInit(init);
    this.#url = dropEnd(addressOf(url).replace(/[?#].*$/, ""), /\//);
    this.#token = token?.trim();
    // A browser's fetch must not be called as a method of something else.
    this.#fetch = given ?? ((input, init) => fetch(input, init));
  }

  /** Sends a request and parses the JSON of the answer. */
  async json<T>(ask: Ask): Promise<T> {
    const response = await this.send(ask);
    try {
      return (await response.json()) as T;
    } catch (cause) {
      ask.signal?.throwIfAborted();
      const { status } = response;
      const message = `The answer of ${this.#url} is not valid JSON; check that a Skein server runs there.`;
      throw new ClientError("UNEXPECTED_ANSWER", message, { status, cause });
    }
  }

  /** Sends bytes of any length, and reports how many were sent. */
  async upload<T>(path: string, bytes: Uint8Array | Blob, { onProgress, signal }: UploadOptions): Promise<T> {
    const type = "application/octet-stream";
    const { XMLHttpRequest: request } = globalThis as { XMLHttpRequest?: new () => BrowserRequest };
    if (onProgress !== undefined && request !== undefined) {
      return this.#uploadInBrowser(new request(), path, bytes, { onProgress, ...(signal && { signal }) });
    }
    const ask = { method: "POST", path, body: { type, content: bytes }, ...(signal && { signal }) } as const;
    const answered = await this.json<T>(ask);
    const total = bytes instanceof Uint8Array ? bytes.byteLength : bytes.size;
    onProgress?.({ sent: total, total });
    return answered;
  }

  /** `fetch` reports no progress of an upload in browsers; `XMLHttpRequest` does. */
  #uploadInBrowser<T>(
    request: BrowserRequest,
    path: string,
    bytes: Uint8Array | Blob,
    { onProgress, signal }: UploadOptions,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      request.open("POST", `${this.#url}${path}`);
      request.setRequestHeader("content-type", "application/octet-stream");
      if (this.#token !== undefined) request.setRequestHeader("authorization", `Bearer ${checkToken(this.#token)}`);
      request.upload.onprogress = ({ loaded, total }) => onProgress?.({ sent: loaded, total });
      request.onerror = () => {
        const message = `The server at ${this.#url} cannot be reached; check the address, and that it runs.`;
        reject(new ClientError("CONNECTION_FAILED", message));
      };
      request.onload = () => {
        const { status, responseText } = request;
        const headers = { "content-type": request.getResponseHeader("content-type") ?? "" };
        const response = new Response(responseText, { status, headers });
        if (response.ok) response.json().then((answered) => resolve(answered as T), reject);
        else errorOf(response).then(reject, reject);
      };
      signal?.addEventListener("abort", () => {
        request.abort();
        reject(signal.reason);
      });
      request.send(bytes);
    });
  }

  /** Sends a request whose answer has no body. */
  async empty(ask: Ask): Promise<void> {
    await (await this.send(ask)).body?.cancel();
  }

  /** Sends a request and returns a successful answer. @throws {ClientError} for any other answer, or none. */
  async send({ method = "GET", path, query = {}, json, body, headers = {}, signal }: Ask): Promise<Response> {
    const init: RequestInit = {
      method,
      headers: {
        ...(this.#token === undefined ? {} : { authorization: `Bearer ${checkToken(this.#token)}` }),
        ...(json === undefined ? {} : { "content-type": "application/json" }),
        ...(body === undefined ? {} : { "content-type": body.type }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      ...(body === undefined ? {} : { body: body.content as string }),
      ...(signal === undefined ? {} : { signal }),
    };
    let response: Response;
    try {
      response = await this.#fetch(`${this.#url}${path}${searchOf(query)}`, init);
    } catch (cause) {
      signal?.throwIfAborted();
      const message = `The server at ${this.#url} cannot be reached; check the address, and that it runs.`;
      throw new ClientError("CONNECTION_FAILED", message, { cause });
    }
    if (!response.ok) throw await errorOf(response);
    return response;
  }
}

/**
 * @throws {ClientError} `INVALID_OPTION` unless `init` is an object; it may have more keys, such as those of a `LocalServer`.
 */
function checkInit(init: TransportInit): TransportInit {
  if (typeof init === "object" && init !== null) return init;
  throw new ClientError("INVALID_OPTION", "A client needs options with the url of its server.");
}

function addressOf(url: string | URL): string {
  try {
    const { protocol, username, password, href } = new URL(url);
    if (/^https?:$/.test(protocol) && username === "" && password === "") return href;
  } catch {
    // The error below does not quote the URL, which may contain a secret.
  }
  const message = "The url of a client must look like https://host:4117, without a user or a password.";
  throw new ClientError("INVALID_OPTION", message);
}

/**
 * @throws {ClientError} `INVALID_OPTION` for a token that is not a valid header value: `fetch` would throw, which would look like
 * a lost server.
 */
function checkToken(token: string): string {
  if (/^[\x21-\x7e]*$/.test(token)) return token;
  throw new ClientError(
    "INVALID_OPTION",
    "The token of a client contains spaces or characters that no token has; copy it again.",
  );
}

/** Builds a path with ids in it, each as one segment. @throws {ClientError} `INVALID_ID` for an id that cannot be in a path. */
export function pathOf(parts: TemplateStringsArray, ...ids: readonly string[]): string {
  return parts.map((part, index) => part + (index < ids.length ? segmentOf(ids[index] as string) : "")).join("");
}

function segmentOf(id: string): string {
  try {
    if (typeof id === "string" && id !== "") return encodeSegment(id);
  } catch {
    // Half a surrogate pair has no encoding in UTF-8.
  }
  throw new ClientError("INVALID_ID", "An id is empty, not a text, or holds half a surrogate pair.");
}

function searchOf(query: object): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const item of [value].flat()) if (item !== undefined) search.append(name, String(item));
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

/** The items of all pages; each page is requested when it is needed. */
export async function* allPages<T>(
  read: (next: string | null) => Promise<Page<T>>,
): AsyncGenerator<T, void, undefined> {
  let next: string | null = null;
  do {
    const page: Page<T> = await read(next);
    yield* page.items;
    next = page.next;
  } while (next !== null);
}
