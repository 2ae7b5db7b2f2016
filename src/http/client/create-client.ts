import type { SessionStatus } from "../../session/log/entry.ts";
import type { CallAnalytics } from "../../session/state/call-samples.ts";
import type {
  AnalyticsRequest,
  AnalyticsView,
  CallAnalyticsRequest,
  Catalogue,
  Me,
  ProgramsView,
  SearchView,
} from "../wire.ts";
import type { FleetView } from "../run-wire.ts";
import { CheckpointsClient } from "./checkpoints-client.ts";
import { RunsClient } from "./runs-client.ts";
import { SessionsClient } from "./sessions-client.ts";
import { type CallOptions, type Fetch, Transport } from "./transport.ts";
import { UsersClient } from "./users-client.ts";

/** The server's address, and the credentials of the caller. */
export interface ClientInit {
  /** The address of the server, without `/api`. */
  readonly url: string | URL;
  /** The API token, if the server requires one. */
  readonly token?: string;
  /** Replaces the runtime's own `fetch`. */
  readonly fetch?: Fetch;
}

/** Filters the sessions that a search returns. */
export interface SearchOptions extends CallOptions {
  readonly userId?: string;
  readonly cwd?: string;
  readonly status?: SessionStatus | readonly SessionStatus[];
  /** Only sessions of this program, of those that were found, such as `skein` or `claude-code`. */
  readonly program?: string;
  readonly limit?: number;
}

/** A client of a Skein server, for browsers and other programs. */
export class Client {
  readonly sessions: SessionsClient;
  readonly checkpoints: CheckpointsClient;
  readonly runs: RunsClient;
  readonly users: UsersClient;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.sessions = new SessionsClient(transport);
    this.checkpoints = new CheckpointsClient(transport);
    this.runs = new RunsClient(transport);
    this.users = new UsersClient(transport);
  }

  /** Resolves if the server and its store are available. */
  async health(options: CallOptions = {}): Promise<{ readonly status: "ok" }> {
    return this.#transport.json({ path: "/api/health", ...options });
  }

  /** The caller, as the server has authenticated them. */
  async me(options: CallOptions = {}): Promise<Me> {
    return this.#transport.json({ path: "/api/me", ...options });
  }

  /** The agents, models and groups that the server offers. */
  async catalogue(options: CallOptions = {}): Promise<Catalogue> {
    return this.#transport.json({ path: "/api/catalogue", ...options });
  }

  /** The programs on the server's machine whose sessions can be imported, with the progress of their imports. */
  async programs(options: CallOptions = {}): Promise<ProgramsView> {
    return this.#transport.json({ path: "/api/programs", ...options });
  }

  /** Begins to import and follow the sessions of these programs (default: all that keep sessions in files). */
  async importPrograms(names?: readonly string[], options: CallOptions = {}): Promise<ProgramsView> {
    const json = names === undefined ? {} : { programs: names };
    return this.#transport.json({ method: "POST", path: "/api/programs/import", json, ...options });
  }

  /** The workers with their runs, and the runs that wait for a worker, as far as the caller may see them. */
  async fleet(options: CallOptions = {}): Promise<FleetView> {
    return this.#transport.json({ path: "/api/fleet", ...options });
  }

  /** Sessions in which every term occurs: words, `"exact phrases"`, `re:<regex>`. */
  async search(text: string, given?: SearchOptions): Promise<SearchView> {
    const { signal, ...query } = given ?? {};
    const options = signal === undefined ? {} : { signal };
    return this.#transport.json({ path: "/api/search", query: { q: text, ...query }, ...options });
  }

  /** Totals over sessions. */
  async analytics(request: AnalyticsRequest = {}, options: CallOptions = {}): Promise<AnalyticsView> {
    return this.#transport.json({ path: "/api/analytics", query: request, ...options });
  }

  /** The latency of answers and the tools that were called, in the latest sessions. */
  async callAnalytics(request: CallAnalyticsRequest = {}, options: CallOptions = {}): Promise<CallAnalytics> {
    return this.#transport.json({ path: "/api/analytics/calls", query: request, ...options });
  }

  /** The OpenAPI 3.1 description of the server's routes. */
  async openapi(options: CallOptions = {}): Promise<Readonly<Record<string, unknown>>> {
    return this.#transport.json({ path: "/openapi.json", ...options });
  }
}

/** Creates a client of the server at a URL, without sending a request. @throws {ClientError} `INVALID_OPTION`. */
export function createClient(init: ClientInit): Client {
  return new Client(new Transport(init));
}
