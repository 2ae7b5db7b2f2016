import type { Agent } from "../agent/agent.ts";
import type { ParkOptions } from "../agent/loop-options.ts";
import type { Model } from "../agent/model/model.ts";
import type { AskPolicy } from "../agent/tools/ask-policy.ts";
import type { GroupSession } from "../group/group-session.ts";
import type { SessionManager } from "../lifecycle/session-manager.ts";
import type { SessionStore } from "../session/store.ts";
import type { RunQueue } from "../workers/run-queue.ts";
import type { RunPlace } from "../workers/user-places.ts";
import type { ParkedRun, RunWebhook } from "../workers/worker-options.ts";
import type { ApiToken, TokenSource } from "./api-token.ts";
import type { Authenticate } from "./caller-init.ts";
import type { ServerLogger } from "./server/server-services.ts";

/** Limits of a server on requests, answers and storage. */
export interface ServerLimits {
  /** The most bytes of a request's body (default 1 MiB), except for bodies with pictures and imports. */
  readonly bodyBytesMax?: number;
  /** The most JSON values in a body, nested ones included (default 200,000). */
  readonly bodyValuesMax?: number;
  /** The most bytes of a body that may contain pictures: turns, entries, and messages to runs (default 16 MiB). */
  readonly contentBytesMax?: number;
  /** The most parts of one message (default 1,000, at most 10,000). */
  readonly contentPartsMax?: number;
  /** The most bytes of a file to import (default 16 MiB). */
  readonly importBytesMax?: number;
  /** The most bytes of an uploaded image or file (default 100 MiB); the store has a limit of its own, `blobBytesMax`. */
  readonly uploadBytesMax?: number;
  /** The most entries of a file to import (default 10,000): a store creates a session in one atomic write. */
  readonly importEntriesMax?: number;
  /**
   * The most bytes that the bodies of a user's concurrent requests may take, with 64 bytes more for each JSON value (default 64
   * MiB).
   */
  readonly bodyBytesPerUser?: number;
  /** The limit for the requests of all users together (default: three times `bodyBytesPerUser`). */
  readonly bodyBytesAtOnce?: number;
  /** The most bytes of answers that are sent to a user and not yet read (default 32 MiB). */
  readonly answerBytesPerUser?: number;
  /** The limit for the answers to all users together (default: four times `answerBytesPerUser`). */
  readonly answerBytesAtOnce?: number;
  /**
   * How many requests that read more than a mebibyte run concurrently (default 4); the rest wait in a queue that is fair between
   * users.
   */
  readonly heavyAtOnce?: number;
  /** How long a client may take to read data that is ready, a page or a chunk of a stream (default 60 s). */
  readonly answerTimeoutMs?: number;
  /** The most event streams that a user may have open on this server (default 20). */
  readonly streamsPerUser?: number;
  /**
   * The most sessions that may be stored for a user, with any status, deleted sessions included until they are purged; null for
   * no limit (default: 10,000 with tokens or `authenticate`, no limit without).
   */
  readonly storedSessionsPerUser?: number | null;
  /**
   * The most bytes that may be stored for a user, in the logs of their sessions and in the directory that the server made for
   * them; null for no limit (default: 2 GiB with tokens or `authenticate`, no limit without).
   */
  readonly storedBytesPerUser?: number | null;
  /** The most runs of a user that the server's own worker runs concurrently (default 10); the rest wait. */
  readonly maxRunsPerUser?: number;
  /**
   * The most sessions with a run that waits for a worker; a request for one more is refused with `OVERLOADED` (default 10,000).
   */
  readonly maxWaiting?: number;
  /** The most characters of a URL (default 16,384). */
  readonly urlCharactersMax?: number;
  /** How long a client may take to send the headers of a request (default 10 s). */
  readonly headersTimeoutMs?: number;
  /** How long a client may take to send a whole request (default 120 s). */
  readonly requestTimeoutMs?: number;
  /** The rate limit of a caller; null for no limit (default: 50 requests a second with tokens, no limit without). */
  readonly rate?: { readonly requestsPerSecond: number; readonly burst: number } | null;
}

/** The options of `createServer`. */
export interface ServerInit {
  /**
   * The manager of the sessions. Instead of it, a `store` can be given: the server then makes a manager under which no session
   * expires and a user may have any number of sessions.
   */
  readonly manager?: SessionManager;
  readonly store?: SessionStore;
  /**
   * The queue that notifies the workers of a fleet. The server then runs nothing itself, and the options for running runs are
   * given to the workers. Without a queue, the server has an in-process queue and a worker.
   */
  readonly queue?: RunQueue;
  /** The agents that can be run; each needs a name. */
  readonly agents?: readonly Agent[];
  /** The groups that can be run, by name. */
  readonly groups?: Readonly<Record<string, GroupSession>>;
  /** The models that a request can select, beside those of the agents. */
  readonly models?: readonly Model[];
  /** The default place of tools, for sessions without a place (default: none). */
  readonly place?: RunPlace;
  /** Which calls need approval, in all runs of agents and groups. If an agent has its own policy, the stricter one is used. */
  readonly ask?: AskPolicy;
  /** When a run that waits for an approval parks, which releases its session (default: after 30 seconds, until there is an answer). */
  readonly park?: ParkOptions;
  /** Called for each run that parks on this server, so that the application can ask somebody. */
  readonly onParked?: (parked: ParkedRun) => void;
  /** A URL to which each parked run is posted, too. */
  readonly webhook?: RunWebhook;
  /**
   * How often the server looks for runs that are requested, answered or interrupted and have no worker (default 30,000 ms; 0 for
   * never). Requests and answers through this server are handled immediately.
   */
  readonly recoverMs?: number;
  /**
   * Cancels the run of a chat after its last reader on this server has left and none has come back for `afterMs`. By default, the
   * run continues: a front end that drops its connection to stop, as the AI SDK's own transport does, looks the same as one that
   * reloads.
   */
  readonly cancelWhenLeft?: { readonly afterMs: number };
  /**
   * The API tokens that authenticate callers. Without `tokens` and `authenticate`, every request is accepted and the server
   * listens on loopback only.
   */
  readonly tokens?: readonly ApiToken[] | TokenSource;
  /** Authenticates callers by the application's own sign-in; a token of `tokens` has priority. */
  readonly authenticate?: Authenticate;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: a free port. */
  readonly port?: number;
  readonly limits?: ServerLimits;
  /** The origins whose pages may send requests from a browser, such as `https://studio.example.org`. */
  readonly allowedOrigins?: readonly string[];
  /** The directory of the studio's files, which are served at `/`. */
  readonly studioDirectory?: string;
  /** Receives the lines of the server's log (default: no log). */
  readonly logger?: ServerLogger;
}

/** The options of a shutdown. */
export interface CloseOptions {
  /**
   * How long requests and runs may continue (default 10 s). Then the remaining runs are aborted, which can be recovered later,
   * and the remaining requests are cut off.
   */
  readonly drainMs?: number;
}

/**
 * A server for sessions over HTTP.
 *
 * - `close` accepts no new connections, ends event streams, waits for requests and runs, aborts those that take too long, and
 *   resolves when no connection is left. The store stays open: it is the caller's.
 */
export interface SkeinServer extends AsyncDisposable {
  /** The URL of the server; before `listen`, the configured one. */
  readonly url: string;
  /** Answers a request without the network, by the same rules as over it. */
  fetch(request: Request): Promise<Response>;
  /** Starts to listen; resolves to the URL. */
  listen(): Promise<string>;
  close(options?: CloseOptions): Promise<void>;
}

/**
 * Creates a server for sessions; `listen` starts it.
 *
 * @throws {SessionError} `INVALID_OPTION` for an invalid or unsafe option.
 */
export async function createServer(init: ServerInit): Promise<SkeinServer> {
  // Imported lazily: the other exports of this folder need neither the server nor its packages.
  const { startServer } = await import("./server/start-server.ts");
  return startServer(init);
}
