import { isSessionId } from "../../session/id.ts";

// Whoever sends more ids than a client can have come by is guessing, and each one costs a look into the store.
const CANDIDATES_MAX = 4;

/** What a session is looked for in, whatever the framework that the request came by. */
export interface RequestParts {
  /** A header by its name in any case; null when it is not there. */
  header(name: string): string | null;
  /** The URL, or what of it a server was sent. */
  readonly url: string;
  /** Whether the connection that the program itself has is encrypted. */
  readonly https: boolean;
}

/** Where in a request a session may be named. */
export interface IdPlaces {
  readonly headerName: string;
  readonly queryName: string | null;
  readonly cookieName: string | null;
}

/** The parts of a Web-standard request. */
export function partsOfRequest({ headers, url }: Request): RequestParts {
  return { header: (name) => headers.get(name), url, https: url.startsWith("https:") };
}

/** The ids that a request names, in the order in which they count: header, query, cookie. Nothing else can be an id. */
export function candidateIds(parts: RequestParts, { headerName, queryName, cookieName }: IdPlaces): readonly string[] {
  const ids: string[] = [];
  const add = (value: string | null): void => {
    if (ids.length < CANDIDATES_MAX && isSessionId(value) && !ids.includes(value)) ids.push(value);
  };
  add(parts.header(headerName));
  if (queryName !== null) queryValues(parts.url, queryName).forEach(add);
  if (cookieName !== null) cookieValues(parts.header("cookie"), cookieName).forEach(add);
  return ids;
}

/** Whether a request names that session in its cookie. */
export function hasCookie(parts: RequestParts, cookieName: string, id: string): boolean {
  return cookieValues(parts.header("cookie"), cookieName).includes(id);
}

/** Whether the client came by https, as far as that can be believed. */
export function isHttps(parts: RequestParts, trustProxy: boolean): boolean {
  const forwarded = trustProxy ? parts.header("x-forwarded-proto") : null;
  return forwarded === null ? parts.https : forwarded.split(",", 1)[0]?.trim().toLowerCase() === "https";
}

function queryValues(url: string, name: string): readonly string[] {
  if (!url.includes("?")) return [];
  const [, query] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  return query === undefined ? [] : new URLSearchParams(query).getAll(name);
}

function cookieValues(header: string | null, name: string): readonly string[] {
  if (header === null) return [];
  const start = `${name}=`;
  const pairs = header.split(";").map((pair) => pair.trim());
  return pairs.filter((pair) => pair.startsWith(start)).map((pair) => pair.slice(start.length));
}
