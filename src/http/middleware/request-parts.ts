import { isSessionId } from "../../session/id.ts";

// A client has no reason to send more ids than this: it is guessing, and each id costs a lookup in the store.
const CANDIDATES_MAX = 4;

/** The parts of a request in which a session id can be, independent of the framework. */
export interface RequestParts {
  /** A header by its case-insensitive name; null if it is missing. */
  header(name: string): string | null;
  /** The URL, or the part of it that the server received. */
  readonly url: string;
  /** Whether the connection to this process is encrypted. */
  readonly https: boolean;
}

/** The names of the header, the query parameter and the cookie that can hold a session id. */
export interface IdPlaces {
  readonly headerName: string;
  readonly queryName: string | null;
  readonly cookieName: string | null;
}

/** The parts of a Web-standard request. */
export function partsOfRequest({ headers, url }: Request): RequestParts {
  return { header: (name) => headers.get(name), url, https: url.startsWith("https:") };
}

/** The session ids in a request, by priority: header, query, cookie. Strings that cannot be session ids are ignored. */
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

/** Whether the cookie of a request holds that session id. */
export function hasCookie(parts: RequestParts, cookieName: string, id: string): boolean {
  return cookieValues(parts.header("cookie"), cookieName).includes(id);
}

/** Whether the client uses https, by the connection or, if `trustProxy` is set, by the proxy's header. */
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
