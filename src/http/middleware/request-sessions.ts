import { requestBinding, type SessionContext } from "../../lifecycle/session-context.ts";
import type { SessionManager } from "../../lifecycle/session-manager.ts";
import { SessionError, show } from "../../session/errors.ts";
import { checkName } from "../../session/id.ts";
import type { SessionState } from "../../session/state.ts";
import { LruCache } from "../../stores/lru-cache.ts";
import { candidateIds, hasCookie, isHttps, type RequestParts } from "./request-parts.ts";
import { RequestSession } from "./request-session.ts";
import { cookieSeconds, sessionCookie } from "./session-cookie.ts";
import type { SessionMiddlewareOptions } from "./session-middleware-options.ts";

const ANONYMOUS = "anonymous:";
const COOKIES_KNOWN_MAX = 10_000;
// Every request pays for it.
const GLANCE = { turns: false, checkpoint: false } as const;

/** A request with its session, from the beginning to the end of its handling. */
export interface BoundRequest {
  readonly session: RequestSession;
  /** Whether a context leads to the session, so that it must be known when the request ends. */
  readonly isBound: boolean;
  /** Runs a part of the handling with the session bound. */
  run<T>(work: () => T): T;
  /** Begins the answer: the headers that name the session. From now on no session can be made. */
  answer(): readonly (readonly [name: string, value: string])[];
  /** Unbinds the session. */
  end(): void;
}

/**
 * Finds the sessions of requests, in whatever framework.
 *
 * - The first id of header, query and cookie that is an open session of the caller counts; every other id is ignored.
 * - A visitor who is nobody's user has the session whose id they know, if it was made for such a visitor.
 * - A new session has an id that nobody can guess, since for such a visitor the id is what proves whose it is.
 */
export class RequestSessions<R> {
  readonly #options: SessionMiddlewareOptions<R>;
  readonly #manager: SessionManager;
  /** Null where nobody can look for the session of a request; binding it costs more than finding it. */
  readonly #context: SessionContext | null;
  /** When cookies were last set here; one that is not known any more is set again, which does no harm. */
  readonly #cookieTimes = new LruCache<string, number>(COOKIES_KNOWN_MAX);

  constructor(options: SessionMiddlewareOptions<R>) {
    checkOptions(options);
    this.#options = options;
    this.#manager = options.manager;
    this.#context = options.context ?? null;
  }

  /** The request with its session, which is looked up and not yet made. */
  async begin(parts: RequestParts, request: R): Promise<BoundRequest> {
    const { headerName, cookieName, sessionTtl, enabled } = this.#manager.config;
    if (!enabled) return turnedOff(this.#manager);
    const { queryName = "session_id", secure, trustProxy = false } = this.#options;
    const user = await this.#user(request);
    const found = await this.#find(candidateIds(parts, { headerName, queryName, cookieName }), user);
    const userId = found?.userId ?? user ?? `${ANONYMOUS}${crypto.randomUUID()}`;
    let id = found?.sessionId ?? crypto.randomUUID();
    let made = found !== null;
    let answered = false;
    const create = async (): Promise<SessionState> => {
      if (answered) throw tooLate();
      made = true;
      try {
        return await this.#manager.create({ userId, id });
      } catch (error) {
        made = false;
        // Whether the store kept it cannot always be told.
        id = crypto.randomUUID();
        throw error;
      }
    };
    const binding = this.#context === null ? requestBinding(found, create) : this.#context.begin(found, create);
    const init = { manager: this.#manager, userId, found, id: () => id, made: () => made, make: binding.getOrCreate };
    return {
      session: new RequestSession(init),
      isBound: this.#context !== null,
      run: binding.run,
      end: binding.end,
      answer: () => {
        answered = true;
        if (!made) return [];
        if (cookieName === null || !(found === null || this.#isCookieOld(found, parts))) return [[headerName, id]];
        this.#cookieTimes.set(id, Date.now());
        const options = { ttlSeconds: sessionTtl, secure: secure ?? isHttps(parts, trustProxy) };
        return [
          [headerName, id],
          ["Set-Cookie", sessionCookie(cookieName, id, options)],
        ];
      },
    };
  }

  /** Whether half of the life of a session's cookie has passed, as far as this process knows. */
  #isCookieOld({ sessionId, createdAt }: SessionState, parts: RequestParts): boolean {
    const { cookieName, sessionTtl } = this.#manager.config;
    const setMs = this.#cookieTimes.get(sessionId) ?? Date.parse(createdAt);
    if (cookieName === null || Date.now() - setMs < cookieSeconds(sessionTtl) * 500) return false;
    return hasCookie(parts, cookieName, sessionId);
  }

  async #user(request: R): Promise<string | null> {
    const user = (await this.#options.user?.(request)) ?? null;
    if (user === null) return null;
    checkName(user, "a user");
    if (!user.startsWith(ANONYMOUS)) return user;
    throw new SessionError(
      "INVALID_OPTION",
      `The user id ${show(user)} begins with "${ANONYMOUS}", as those of visitors do whom anyone may be; give another.`,
    );
  }

  async #find(ids: readonly string[], user: string | null): Promise<SessionState | null> {
    for (const id of ids) {
      const state = await (user === null ? this.#findAnonymous(id) : this.#look(id, user));
      if (state?.status === "active" || state?.status === "suspended") return state;
    }
    return null;
  }

  async #findAnonymous(id: string): Promise<SessionState | null> {
    try {
      const state = await this.#manager.getState(id, GLANCE);
      return state?.userId?.startsWith(ANONYMOUS) === true ? state : null;
    } catch {
      // To a user, the manager reports a session that cannot be read as missing, and tells whoever runs the service.
      return this.#look(id, ANONYMOUS);
    }
  }

  #look(id: string, actor: string): Promise<SessionState | null> {
    return this.#manager.getState(id, { ...GLANCE, actor });
  }
}

function turnedOff(manager: SessionManager): BoundRequest {
  const make = (): Promise<SessionState> =>
    Promise.reject(new SessionError("NO_SESSION", "Sessions are turned off here; set enabled in the session config."));
  const init = { manager, userId: ANONYMOUS, found: null, id: () => "", made: () => false, make };
  return {
    session: new RequestSession(init),
    isBound: false,
    run: (work) => work(),
    answer: () => [],
    end: () => undefined,
  };
}

function tooLate(): SessionError {
  return new SessionError(
    "NO_SESSION",
    "The answer has begun and can no longer name a new session; use the session before you answer.",
  );
}

function checkOptions(options: SessionMiddlewareOptions<never>): void {
  if (typeof options?.manager?.getState !== "function") {
    throw new SessionError("INVALID_OPTION", "Sessions of requests need a manager; make one with SessionManager.");
  }
  const { user, queryName, secure, trustProxy } = options;
  if (user !== undefined && typeof user !== "function") throw invalid("user", user, "a function of the request");
  if (queryName !== undefined && queryName !== null && (typeof queryName !== "string" || queryName === "")) {
    throw invalid("queryName", queryName, "the name of a parameter, or null");
  }
  for (const [name, flag] of Object.entries({ secure, trustProxy })) {
    if (flag !== undefined && typeof flag !== "boolean") throw invalid(name, flag, "true or false");
  }
}

function invalid(name: string, value: unknown, expectation: string): SessionError {
  return new SessionError("INVALID_OPTION", `${name} is ${show(value)}; give ${expectation}.`);
}
