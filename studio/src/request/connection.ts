type Ask = (url: string, init: RequestInit) => Promise<Response>;

/** How often an unreachable server is checked. */
const LOOK_MS = 1500;

/** The statuses with which a proxy reports an unreachable server. */
const GATEWAY_STATUSES: readonly number[] = [502, 503, 504];

/** Whether the server is reachable. */
export interface ConnectionState {
  readonly lost: boolean;
  /** How often the server became reachable again; each time, all requests are repeated. */
  readonly returns: number;
}

/**
 * Tracks from the requests that are made through it whether the server is reachable.
 *
 * - One failed request is not enough: the connection counts as lost when a health check fails as well.
 * - A lost server is checked until it is reachable again.
 */
export class Connection {
  #state: ConnectionState = { lost: false, returns: 0 };
  #looking = false;
  readonly #ask: Ask;
  readonly #isThere: () => Promise<boolean>;
  readonly #lookMs: number;
  readonly #listeners = new Set<() => void>();

  /** `isThere` checks the server's health; it must not throw. */
  constructor(ask: Ask, isThere: () => Promise<boolean>, lookMs: number = LOOK_MS) {
    this.#ask = ask;
    this.#isThere = isThere;
    this.#lookMs = lookMs;
  }

  /** Like `fetch`, and records whether there was a response. */
  readonly fetch: Ask = async (url, init) => {
    try {
      const response = await this.#ask(url, init);
      if (isOfGateway(response)) this.#doubt();
      return response;
    } catch (error) {
      if (init.signal?.aborted !== true) this.#doubt();
      throw error;
    }
  };

  /** The current state. */
  readonly read = (): ConnectionState => this.#state;

  /** Calls the listener on every change of the state; returns the function that unsubscribes. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  #doubt(): void {
    if (!this.#looking) void this.#look();
  }

  async #look(): Promise<void> {
    this.#looking = true;
    while (!(await this.#isThere())) {
      this.#set({ ...this.#state, lost: true });
      await new Promise((resolve) => setTimeout(resolve, this.#lookMs));
    }
    this.#looking = false;
    if (this.#state.lost) this.#set({ lost: false, returns: this.#state.returns + 1 });
  }

  #set(state: ConnectionState): void {
    if (state.lost === this.#state.lost) return;
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

function isOfGateway({ status, headers }: Response): boolean {
  return GATEWAY_STATUSES.includes(status) && headers.get("content-type")?.includes("json") !== true;
}
