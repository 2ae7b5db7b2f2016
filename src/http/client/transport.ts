import { dropEnd } from "../../internal/trim-text.ts";
import { encodeSegment } from "../path-segment.ts";
import { ClientError, errorOf } from "./client-error.ts";
import type { Page } from "../wire.ts";

/** A `fetch` function: the runtime's, or one that stands in for it. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** What a call may be given beside what it says. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** Where the server is, and how it is asked. */
export interface TransportInit {
  readonly url: string | URL;
  readonly token?: string;
  readonly fetch?: Fetch;
}

/** What is asked of the server. */
export interface Ask extends CallOptions {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** A list is said item by item; what is undefined is not said. */
  readonly query?: object;
  /** Sent as JSON. */
  readonly json?: object;
  /** Sent as it is, as that type. */
  readonly body?: { readonly type: string; readonly content: string | Uint8Array | Blob };
  readonly headers?: Readonly<Record<string, string>>;
}

/** Asks a server, and makes errors of its refusals. */
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

  /** The JSON of an answer. */
  async json<T>(ask: Ask): Promise<T> {
    const response = await this.send(ask);
    try {
      return (await response.json()) as T;
    } catch (cause) {
      ask.signal?.throwIfAborted();
      const { status } = response;
      const message = `What ${this.#url} answered is no whole JSON; check that a Skein server is there.`;
      throw new ClientError("UNEXPECTED_ANSWER", message, { status, cause });
    }
  }

  /** Asks for something that is answered with nothing. */
  async empty(ask: Ask): Promise<void> {
    await (await this.send(ask)).body?.cancel();
  }

  /** The answer, where it is a good one. @throws {ClientError} for any other. */
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

/** @throws {ClientError} `INVALID_OPTION` for what is no address that can be asked. */
/** @throws {ClientError} `INVALID_OPTION` for anything else than an object, which may say more of a server than is needed here. */
function checkInit(init: TransportInit): TransportInit {
  if (typeof init === "object" && init !== null) return init;
  throw new ClientError("INVALID_OPTION", "A client needs options with the url of its server.");
}

function addressOf(url: string | URL): string {
  try {
    const { protocol, username, password, href } = new URL(url);
    if (/^https?:$/.test(protocol) && username === "" && password === "") return href;
  } catch {
    // Told below, without what may be a secret in it.
  }
  const message = "The url of a client must look like https://host:4117, without a user or a password.";
  throw new ClientError("INVALID_OPTION", message);
}

/** @throws {ClientError} `INVALID_OPTION` for a token that no header can carry, which would look like a lost server. */
function checkToken(token: string): string {
  if (/^[\x21-\x7e]*$/.test(token)) return token;
  throw new ClientError(
    "INVALID_OPTION",
    "The token of a client holds spaces or signs that no token has; copy it anew.",
  );
}

/** A path with ids in it, each as one segment. @throws {ClientError} `INVALID_ID` for an id that no path can hold. */
export function pathOf(parts: TemplateStringsArray, ...ids: readonly string[]): string {
  return parts.map((part, index) => part + (index < ids.length ? segmentOf(ids[index] as string) : "")).join("");
}

function segmentOf(id: string): string {
  try {
    if (typeof id === "string" && id !== "") return encodeSegment(id);
  } catch {
    // Half a surrogate pair cannot be said in UTF-8.
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

/** The items of all pages, each page asked for when it is needed. */
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
