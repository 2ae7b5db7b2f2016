type Ask = (url: string, init: RequestInit) => Promise<Response>;

/** How often a server is looked for that cannot be reached. */
const LOOK_MS = 1500;

/** What a proxy answers for a server that it cannot reach. */
const GATEWAY_STATUSES: readonly number[] = [502, 503, 504];

/** Whether the server can be reached. */
export interface ConnectionState {
  readonly lost: boolean;
  /** How often the server was back after it could not be reached; what is shown is asked for again then. */
  readonly returns: number;
}

/**
 * Learns from the requests that are made through it whether the server can be reached.
 *
 * - One request that fails is only a doubt: the connection is lost when looking for the server fails too.
 * - A lost server is looked for until it is there.
 */
export class Connection {
  #state: ConnectionState = { lost: false, returns: 0 };
  #looking = false;
  readonly #ask: Ask;
  readonly #isThere: () => Promise<boolean>;
  readonly #lookMs: number;
  readonly #listeners = new Set<() => void>();

  /** `isThere` looks for the server; it does not throw. */
  constructor(ask: Ask, isThere: () => Promise<boolean>, lookMs: number = LOOK_MS) {
    this.#ask = ask;
    this.#isThere = isThere;
    this.#lookMs = lookMs;
  }

  /** Asks as `fetch` does, and takes note of whether there was an answer. */
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

  /** How it stands now. */
  readonly read = (): ConnectionState => this.#state;

  /** Calls back whenever it stands differently; gives the function that ends it. */
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
