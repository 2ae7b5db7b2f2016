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

/** How much the server takes from a client. */
export interface ServerLimits {
  /** The most bytes of a request's body (default 1 MiB), where pictures and imports do not need more. */
  readonly bodyBytesMax?: number;
  /** The most JSON values of a body, those inside of others included (default 200,000). */
  readonly bodyValuesMax?: number;
  /** The most bytes of a body that may hold pictures: turns, entries, and what is said to runs (default 16 MiB). */
  readonly contentBytesMax?: number;
  /** The most parts of one message (default 1,000, at most 10,000). */
  readonly contentPartsMax?: number;
  /** The most bytes of a file to import (default 16 MiB). */
  readonly importBytesMax?: number;
  /** The most entries of a file to import (default 10,000), as a store makes a session in one step. */
  readonly importEntriesMax?: number;
  /** The most that the bodies of a user's requests take at once, each JSON value counting 64 bytes more (default 64 MiB). */
  readonly bodyBytesPerUser?: number;
  /** The most that the bodies of all requests take at once, likewise (default: three times that). */
  readonly bodyBytesAtOnce?: number;
  /** The most that answers take which a user has been given and not read yet (default 32 MiB). */
  readonly answerBytesPerUser?: number;
  /** The most that answers take which have not been read yet, of all users (default: four times that). */
  readonly answerBytesAtOnce?: number;
  /** How many requests that read more than a mebibyte go on at once (default 4); the rest wait, the users in turn. */
  readonly heavyAtOnce?: number;
  /** How long a client may take to read what an answer has ready, a page or a piece of a stream (default 60 s). */
  readonly answerTimeoutMs?: number;
  /** The most event streams that a user may have open on this server (default 20). */
  readonly streamsPerUser?: number;
  /**
   * The most sessions that a user may keep, of any status, those in the trash included until they are purged; null for any
   * number (default: 10,000 with tokens or `authenticate`, any number without).
   */
  readonly storedSessionsPerUser?: number | null;
  /**
   * The most bytes that a user may keep, in the logs of their sessions and in the directory that was made for them; null for
   * any number (default: 2 GiB with tokens or `authenticate`, any number without).
   */
  readonly storedBytesPerUser?: number | null;
  /** The most runs of a user that the server's own worker has at once (default 10); the rest wait. */
  readonly maxRunsPerUser?: number;
  /** The most sessions with a run that waits to be taken up, before more are refused with `OVERLOADED` (default 10,000). */
  readonly maxWaiting?: number;
  /** The most characters of a URL (default 16,384). */
  readonly urlCharactersMax?: number;
  /** How long a client may take to send the headers of a request (default 10 s). */
  readonly headersTimeoutMs?: number;
  /** How long a client may take to send a whole request (default 120 s). */
  readonly requestTimeoutMs?: number;
  /** How many requests a caller may make; null for any number (default: 50 a second with tokens, any number without). */
  readonly rate?: { readonly requestsPerSecond: number; readonly burst: number } | null;
}

/** What a server is made of. */
export interface ServerInit {
  /** The manager of the sessions; or a store, for a manager of the server's own under which no session expires and a user may have any number. */
  readonly manager?: SessionManager;
  readonly store?: SessionStore;
  /**
   * Tells the workers of a fleet that a run waits; the server then runs nothing itself, and what concerns the running of
   * runs is given to the workers. Left out, the server has a queue and a worker of its own.
   */
  readonly queue?: RunQueue;
  /** The agents that can be run; each needs a name. */
  readonly agents?: readonly Agent[];
  /** The groups that can be run, by name. */
  readonly groups?: Readonly<Record<string, GroupSession>>;
  /** The models that can be asked for, beside those of the agents. */
  readonly models?: readonly Model[];
  /** Where the tools of agents act, in sessions that do not say so themselves. Left out, they have no such place. */
  readonly place?: RunPlace;
  /**
   * Which calls run without a person's word, in all runs of agents and groups. Of this and an agent's own word, the
   * stricter one holds.
   */
  readonly ask?: AskPolicy;
  /** When runs let go of their sessions while they wait for a person's word (default: after 30 seconds, for 7 days). */
  readonly park?: ParkOptions;
  /** Told of each run that parks on this server, so that somebody can be asked. */
  readonly onParked?: (parked: ParkedRun) => void;
  /** Where that is posted to, too. */
  readonly webhook?: RunWebhook;
  /**
   * How often the server looks for runs that were asked for, answered or interrupted and that nobody has (default 30,000
   * ms; 0 for never). What comes in through this server it takes up at once.
   */
  readonly recoverMs?: number;
  /**
   * Stops the run of a chat when everyone who read it here has left and nobody comes back for so long. Left out, a run goes
   * on: a front end that only drops its connection to stop, as the AI SDK's own transport does, cannot be told from one
   * that is loaded again.
   */
  readonly cancelWhenLeft?: { readonly afterMs: number };
  /**
   * Who may come in, by API token. Left out together with `authenticate`, everyone on this machine may, and the server
   * listens on loopback only.
   */
  readonly tokens?: readonly ApiToken[] | TokenSource;
  /** Who may come in by a sign-in of the application's own; a token of `tokens` counts first. */
  readonly authenticate?: Authenticate;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any that is free. */
  readonly port?: number;
  readonly limits?: ServerLimits;
  /** Origins whose pages may use the server from a browser, such as `https://studio.example.org`. */
  readonly allowedOrigins?: readonly string[];
  /** The files of the browser program to serve at `/`. */
  readonly studioDirectory?: string;
  /** Takes the lines of the log (default: there is none). */
  readonly logger?: ServerLogger;
}

/** How a server is shut down. */
export interface CloseOptions {
  /**
   * How long requests and runs may go on (default 10 s). Runs that are not done then are aborted and can be gone on with
   * later; requests are cut off.
   */
  readonly drainMs?: number;
}

/**
 * Sessions over HTTP.
 *
 * - `close` takes no new connections, ends the streams of watchers, lets requests and runs finish, aborts those that take
 *   too long, and resolves when no connection is left. The store stays open: it is the caller's.
 */
export interface SkeinServer extends AsyncDisposable {
  /** Where it listens; before `listen`, where it was told to. */
  readonly url: string;
  /** Answers a request without the network, by the same rules. */
  fetch(request: Request): Promise<Response>;
  /** Begins to listen; resolves to the URL. */
  listen(): Promise<string>;
  close(options?: CloseOptions): Promise<void>;
}

/**
 * A server for sessions; it listens once it is told to.
 *
 * @throws {SessionError} `INVALID_OPTION` for an option that makes no sense or is not safe.
 */
export async function createServer(init: ServerInit): Promise<SkeinServer> {
  // Loaded here, as what else this folder offers needs neither the server nor its packages.
  const { startServer } = await import("./server/start-server.ts");
  return startServer(init);
}
