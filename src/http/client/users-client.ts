import type { EraseReport } from "../../lifecycle/erase/erase-report.ts";
import type { BudgetView } from "../wire.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** The options of an erasure. */
export interface EraseRequest {
  /** Only reports what would be erased. */
  readonly dryRun?: boolean;
  /** Whether other users' forks keep or lose the user's words that they begin with (default `keep`). */
  readonly forks?: "keep" | "erase";
}

/** The budget of a user, and for administrators erasing and exporting users. */
export class UsersClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Erases everything of a user for good. A repeated call continues an interrupted erasure. */
  async erase(userId: string, given?: EraseRequest & CallOptions): Promise<EraseReport> {
    const { signal, ...query } = given ?? {};
    const options = signal === undefined ? {} : { signal };
    return this.#transport.json({ method: "DELETE", path: pathOf`/api/users/${userId}`, query, ...options });
  }

  /** How far a user has used up each limit of the server's budgets; of others, for administrators. */
  async budget(userId: string, options: CallOptions = {}): Promise<BudgetView> {
    return this.#transport.json({ path: pathOf`/api/users/${userId}/budget`, ...options });
  }

  /** Everything stored about a user, as one archive (tar). */
  async exportArchive(userId: string, options: CallOptions = {}): Promise<Blob> {
    return (await this.#transport.send({ path: pathOf`/api/users/${userId}/export`, ...options })).blob();
  }
}
