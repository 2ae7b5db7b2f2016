import { type RequestBinding, requestBinding } from "../../lifecycle/session-context.ts";
import type { SessionManager } from "../../lifecycle/session-manager.ts";
import { checkKeys, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { checkName } from "../../session/id.ts";
import { NO_SETTINGS, type Settings } from "../../session/log/settings.ts";
import { type SessionState, stateOf } from "../../session/state/state.ts";
import { candidateIds, hasCookie, isHttps, type RequestParts } from "./request-parts.ts";
import { RequestSession, type SessionSource } from "./request-session.ts";
import type { SessionMiddlewareOptions } from "./session-middleware-options.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { LruCache } from "../../internal/lru-cache.ts";

const ANONYMOUS = "anonymous:";
// `gather` batches the head reads of concurrent requests: every request needs one.
const GATHERED = { gather: true } as const;

/** The headers that name the session of a request. */
export type SessionHeaders = readonly (readonly [name: string, value: string])[];

/** A request with its session, while it is handled. */
export interface BoundRequest {
  readonly session: RequestSession;
  /** Whether the session is bound to a context, so that the end of the request must be known. */
  readonly isBound: boolean;
  /** Runs a function with the session bound. */
  run<T>(work: () => T): T;
  /** Starts the answer and returns the headers that name the session. Afterwards no session can be created. */
  answer(): SessionHeaders;
  /** Unbinds the session. */
  end(): void;
}

/**
 * Finds the sessions of requests, for every framework.
 *
 * - The first id in header, query and cookie that is an open session of the caller is used; every other id is ignored.
 * - An anonymous visitor gets the session whose id they send, if it was created for an anonymous visitor. An id in the query is
 *   used for them only with `anonymousQuery`.
 * - The id of a new session cannot be guessed: for an anonymous visitor it is the only credential.
 */
export class RequestSessions<R> {
  /** The property of requests that holds the session. */
  readonly property: string;
  readonly #options: SessionMiddlewareOptions<R>;
  readonly #cookies = new CookieTimes();

  constructor(options: SessionMiddlewareOptions<R>) {
    checkMiddlewareOptions(options);
    this.#options = options;
    this.property = options.property ?? "session";
  }

  /** Refuses a request whose property holds something else. @throws {SessionError} `INVALID_OPTION`. */
  checkFree(held: unknown): void {
    if (held !== undefined && !(held instanceof RequestSession)) throw takenProperty(this.property);
  }

  /** Looks up the session of a request, without creating one. */
  async begin(parts: RequestParts, request: R): Promise<BoundRequest> {
    const { manager, queryName = "session_id", anonymousQuery = false } = this.#options;
    const { headerName, cookieName, enabled } = manager.config;
    if (!enabled) return disabledSessions(manager);
    const user = this.#options.user === undefined ? null : checkUser((await this.#options.user(request)) ?? null);
    // A link must not put a visitor into a session of its author, who could then read what the visitor says.
    const named = user === null && !anonymousQuery ? null : queryName;
    const found = await this.#find(candidateIds(parts, { headerName, queryName: named, cookieName }), user);
    // Most sessions of visitors have no settings, which saves a read of the store.
    const settings =
      found === null || found.path.settings === null
        ? NO_SETTINGS
        : await manager.store.settings(found.header.id, found.path);
    return new LookedUpRequest(this.#options, { parts, found, settings, user, cookies: this.#cookies });
  }

  async #find(ids: readonly string[], user: string | null): Promise<SessionHead | null> {
    for (const id of ids) {
      const head = await (user === null ? this.#findAnonymous(id) : this.#look(id, user));
      if (head?.status === "active" || head?.status === "suspended") return head;
    }
    return null;
  }

  async #findAnonymous(id: string): Promise<SessionHead | null> {
    try {
      const head = await this.#options.manager.head(id, GATHERED);
      return head?.header.userId?.startsWith(ANONYMOUS) === true ? head : null;
    } catch {
      // With an actor, the manager reports an unreadable session as missing, and reports the error to its operator.
      return this.#look(id, ANONYMOUS);
    }
  }

  #look(id: string, actor: string): Promise<SessionHead | null> {
    return this.#options.manager.head(id, { ...GATHERED, actor });
  }
}

/** A request after the lookup of its session. */
interface LookedUp {
  readonly parts: RequestParts;
  readonly found: SessionHead | null;
  /** The settings of the session. */
  readonly settings: Settings;
  readonly user: string | null;
  /** Shared by all requests. */
  readonly cookies: CookieTimes;
}

class LookedUpRequest implements BoundRequest, SessionSource {
  readonly manager: SessionManager;
  readonly userId: string;
  readonly isNew: boolean;
  readonly isBound: boolean;
  readonly session: RequestSession;
  readonly #options: SessionMiddlewareOptions<never>;
  readonly #parts: RequestParts;
  readonly #found: SessionHead | null;
  readonly #settings: Settings;
  readonly #cookies: CookieTimes;
  #binding: RequestBinding | null = null;
  #id: string;
  #isMade: boolean;
  #answer: SessionHeaders | null = null;

  constructor(options: SessionMiddlewareOptions<never>, { parts, found, settings, user, cookies }: LookedUp) {
    this.#options = options;
    this.#parts = parts;
    this.#found = found;
    this.#settings = settings;
    this.#cookies = cookies;
    this.manager = options.manager;
    this.userId = found?.header.userId ?? user ?? `${ANONYMOUS}${crypto.randomUUID()}`;
    this.isNew = found === null;
    this.#id = found?.header.id ?? crypto.randomUUID();
    this.#isMade = !this.isNew;
    this.isBound = options.context !== undefined;
    if (options.context !== undefined) this.#binding = options.context.begin(this.#foundState(), () => this.#create());
    this.session = new RequestSession(this);
  }

  get id(): string {
    return this.#id;
  }

  get isMade(): boolean {
    return this.#isMade;
  }

  make(): Promise<SessionState> {
    this.#binding ??= requestBinding(this.#foundState(), () => this.#create());
    return this.#binding.getOrCreate();
  }

  run<T>(work: () => T): T {
    return this.#binding === null ? work() : this.#binding.run(work);
  }

  end(): void {
    this.#binding?.end();
  }

  answer(): SessionHeaders {
    this.#answer ??= this.#isMade ? this.#headers() : [];
    return this.#answer;
  }

  #headers(): SessionHeaders {
    const { headerName, cookieName, sessionTtl: ttlSeconds } = this.manager.config;
    if (cookieName === null || !(this.isNew || this.#isCookieOld(cookieName))) return [[headerName, this.#id]];
    this.#cookies.set(this.#id);
    const { secure = isHttps(this.#parts, this.#options.trustProxy ?? false) } = this.#options;
    return [
      [headerName, this.#id],
      ["Set-Cookie", sessionCookie(cookieName, this.#id, { ttlSeconds, secure })],
    ];
  }

  /** Only for a request that sent the cookie; other clients have not asked for one. */
  #isCookieOld(cookieName: string): boolean {
    if (this.#found === null || !this.#cookies.isOld(this.#found.header, this.manager.config.sessionTtl)) return false;
    return hasCookie(this.#parts, cookieName, this.#id);
  }

  #foundState(): SessionState | null {
    return this.#found === null ? null : stateOf(this.#found, this.#settings, [], { checkpointId: null });
  }

  async #create(): Promise<SessionState> {
    if (this.#answer !== null) throw tooLate();
    this.#isMade = true;
    try {
      return await this.manager.create({ userId: this.userId, id: this.#id });
    } catch (error) {
      this.#isMade = false;
      // The store may have created the session in spite of the error, so its id is not used again.
      this.#id = crypto.randomUUID();
      throw error;
    }
  }
}

/** The error for a property that another package uses. */
export function takenProperty(property: string): SessionError {
  return new SessionError(
    "INVALID_OPTION",
    `The property ${show(property)} of requests is already used, perhaps by another package for sessions; give ours another name, as in { property: "chat" }.`,
  );
}

function checkUser(user: string | null): string | null {
  if (user === null) return null;
  checkName(user, "a user");
  if (!user.startsWith(ANONYMOUS)) return user;
  throw new SessionError(
    "INVALID_OPTION",
    `The user id ${show(user)} begins with "${ANONYMOUS}", which is reserved for anonymous visitors; give another.`,
  );
}

function disabledSessions(manager: SessionManager): BoundRequest {
  const make = (): Promise<SessionState> =>
    Promise.reject(new SessionError("NO_SESSION", "Sessions are turned off here; set enabled in the session config."));
  return {
    session: new RequestSession({ manager, userId: ANONYMOUS, isNew: true, id: "", isMade: false, make }),
    isBound: false,
    run: (work) => work(),
    answer: () => [],
    end: () => undefined,
  };
}

function tooLate(): SessionError {
  return new SessionError(
    "NO_SESSION",
    "The answer has started and can no longer name a new session; use the session before you answer.",
  );
}

const OPTIONS: KeysOf<SessionMiddlewareOptions> = {
  manager: true,
  context: true,
  property: true,
  user: true,
  queryName: true,
  anonymousQuery: true,
  secure: true,
  trustProxy: true,
};

function checkMiddlewareOptions(options: SessionMiddlewareOptions<never>): void {
  if (typeof options?.manager?.getState !== "function") {
    throw new SessionError("INVALID_OPTION", "Sessions of requests need a manager; make one with SessionManager.");
  }
  checkKeys(options, OPTIONS, "The session middleware");
  const { user, property, queryName, anonymousQuery, secure, trustProxy } = options;
  if (property !== undefined && (typeof property !== "string" || property === "")) {
    throw invalidMiddlewareOption("property", property, "the name of a property");
  }
  if (user !== undefined && typeof user !== "function")
    throw invalidMiddlewareOption("user", user, "a function of the request");
  if (queryName !== undefined && queryName !== null && (typeof queryName !== "string" || queryName === "")) {
    throw invalidMiddlewareOption("queryName", queryName, "the name of a parameter, or null");
  }
  for (const [name, flag] of Object.entries({ anonymousQuery, secure, trustProxy })) {
    if (flag !== undefined && typeof flag !== "boolean") throw invalidMiddlewareOption(name, flag, "true or false");
  }
}

function invalidMiddlewareOption(name: string, value: unknown, expectation: string): SessionError {
  return new SessionError("INVALID_OPTION", `${name} is ${show(value)}; give ${expectation}.`);
}

// 400 days: the longest time that browsers keep a cookie. Used for a session that never expires.
const FOREVER_SECONDS = 34_560_000;

const COOKIES_KNOWN_MAX = 10_000;

/** When this process last set each cookie. A cookie that the cache has evicted is set again, which does no harm. */
class CookieTimes {
  readonly #times = new LruCache<string, number>(COOKIES_KNOWN_MAX);

  set(sessionId: string): void {
    this.#times.set(sessionId, Date.now());
  }

  /** Whether half of the cookie's lifetime has passed, as far as this process knows. */
  isOld({ id, createdAt }: Pick<SessionHeader, "id" | "createdAt">, ttlSeconds: number): boolean {
    const setMs = this.#times.get(id) ?? Date.parse(createdAt);
    return Date.now() - setMs >= cookieSeconds(ttlSeconds) * 500;
  }
}

/** The lifetime of the cookie of a session that expires after `ttlSeconds` without use. */
function cookieSeconds(ttlSeconds: number): number {
  return ttlSeconds === 0 ? FOREVER_SECONDS : ttlSeconds;
}

/** The value of the `Set-Cookie` header that gives a session's id to a browser. */
function sessionCookie(
  name: string,
  id: string,
  { ttlSeconds, secure }: { readonly ttlSeconds: number; readonly secure: boolean },
): string {
  return `${name}=${id}; HttpOnly; SameSite=Lax; Path=/; Max-Age=${cookieSeconds(ttlSeconds)}${secure ? "; Secure" : ""}`;
}
