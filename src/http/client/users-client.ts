import type { EraseReport } from "../../lifecycle/erase/erase-report.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** How a user is erased. */
export interface EraseRequest {
  /** Only says what would be erased. */
  readonly dryRun?: boolean;
  /** What becomes of words that forks of others begin with (default `keep`). */
  readonly forks?: "keep" | "erase";
}

/** People, for administrators. */
export class UsersClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Removes for good everything of a user; sent again, it goes on where it was. */
  async erase(userId: string, { signal, ...query }: EraseRequest & CallOptions = {}): Promise<EraseReport> {
    const options = signal === undefined ? {} : { signal };
    return this.#transport.json({ method: "DELETE", path: pathOf`/api/users/${userId}`, query, ...options });
  }

  /** What is held about a user, as one archive (tar). */
  async exportArchive(userId: string, options: CallOptions = {}): Promise<Blob> {
    return (await this.#transport.send({ path: pathOf`/api/users/${userId}/export`, ...options })).blob();
  }
}
