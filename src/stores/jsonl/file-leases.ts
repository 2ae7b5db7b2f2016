import type { LeaseTable } from "../../session/store-driver.ts";
import type { LeaseInfo } from "../../session/store.ts";
import { acquireLease, endLease, readLease, renewLease } from "./lease-file.ts";
import type { SessionFiles } from "./session-files.ts";
import { guarded } from "./store-failure.ts";

/** Leases that hold among all processes that use the directory. */
export class FileLeases implements LeaseTable {
  readonly #files: SessionFiles;

  constructor(files: SessionFiles) {
    this.#files = files;
  }

  async acquire(sessionId: string, runId: string, ttlMs: number): Promise<LeaseInfo> {
    return guarded(async () => {
      this.#files.checkWritable();
      const writer = await this.#files.writerOf(sessionId);
      return writer.exclusively(({ lease }) => acquireLease(lease, sessionId, runId, this.#files.now(), ttlMs));
    });
  }

  async renew(sessionId: string, token: number, ttlMs: number): Promise<string | null> {
    return guarded(async () => {
      const file = await this.#files.live.find(sessionId);
      if (file === null) return null;
      return this.#files.writerTo(file).exclusively(({ lease }) => renewLease(lease, token, this.#files.now(), ttlMs));
    });
  }

  async release(sessionId: string, token: number): Promise<void> {
    return guarded(async () => {
      const file = await this.#files.live.find(sessionId);
      if (file !== null)
        await this.#files.writerTo(file).exclusively(({ lease }) => endLease(lease, token, this.#files.now()));
    });
  }

  async current(sessionId: string): Promise<LeaseInfo | null> {
    return guarded(async () => {
      const file = await this.#files.live.find(sessionId);
      return file === null ? null : readLease(file.places.lease, sessionId, this.#files.now());
    });
  }
}
