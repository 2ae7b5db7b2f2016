import type { SessionStatus } from "../../session/log/entry.ts";
import type { CallAnalytics } from "../../session/state/call-samples.ts";
import type { AnalyticsRequest, AnalyticsView, CallAnalyticsRequest, Catalogue, Me, SearchView } from "../wire.ts";
import type { FleetView } from "../run-wire.ts";
import { CheckpointsClient } from "./checkpoints-client.ts";
import { RunsClient } from "./runs-client.ts";
import { SessionsClient } from "./sessions-client.ts";
import { type CallOptions, type Fetch, Transport } from "./transport.ts";
import { UsersClient } from "./users-client.ts";

/** Where the server is, and who asks. */
export interface ClientInit {
  /** The address of the server, without `/api`. */
  readonly url: string | URL;
  /** The API token, where the server wants one. */
  readonly token?: string;
  /** Asks instead of the runtime's own `fetch`. */
  readonly fetch?: Fetch;
}

/** Which of the found sessions to give. */
export interface SearchOptions extends CallOptions {
  readonly userId?: string;
  readonly cwd?: string;
  readonly status?: SessionStatus | readonly SessionStatus[];
  readonly limit?: number;
}

/** A Skein server, as a browser or another program sees it. */
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

  /** Resolves when the server and its store answer. */
  async health(options: CallOptions = {}): Promise<{ readonly status: "ok" }> {
    return this.#transport.json({ path: "/api/health", ...options });
  }

  /** Who the server takes the caller for. */
  async me(options: CallOptions = {}): Promise<Me> {
    return this.#transport.json({ path: "/api/me", ...options });
  }

  /** The agents, models and groups that the server offers. */
  async catalogue(options: CallOptions = {}): Promise<Catalogue> {
    return this.#transport.json({ path: "/api/catalogue", ...options });
  }

  /** The workers and what they run, and what waits for one, as far as the caller may see it. */
  async fleet(options: CallOptions = {}): Promise<FleetView> {
    return this.#transport.json({ path: "/api/fleet", ...options });
  }

  /** Sessions in which every term occurs: words, `"exact phrases"`, `re:<regex>`. */
  async search(text: string, { signal, ...query }: SearchOptions = {}): Promise<SearchView> {
    const options = signal === undefined ? {} : { signal };
    return this.#transport.json({ path: "/api/search", query: { q: text, ...query }, ...options });
  }

  /** Sums over sessions. */
  async analytics(request: AnalyticsRequest = {}, options: CallOptions = {}): Promise<AnalyticsView> {
    return this.#transport.json({ path: "/api/analytics", query: request, ...options });
  }

  /** How long answers took and which tools were called, in the latest sessions. */
  async callAnalytics(request: CallAnalyticsRequest = {}, options: CallOptions = {}): Promise<CallAnalytics> {
    return this.#transport.json({ path: "/api/analytics/calls", query: request, ...options });
  }

  /** The description of the server's routes, in OpenAPI 3.1. */
  async openapi(options: CallOptions = {}): Promise<Readonly<Record<string, unknown>>> {
    return this.#transport.json({ path: "/openapi.json", ...options });
  }
}

/** A client of the server at an address; nothing is asked yet. @throws {ClientError} `INVALID_OPTION`. */
export function createClient(init: ClientInit): Client {
  return new Client(new Transport(init));
}
