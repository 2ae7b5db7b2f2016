import { checkClock } from "../complete/valid-arguments.ts";
import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { BLOB_OPTIONS, type BlobOptions } from "../../session/blob.ts";
import type { SessionStore } from "../../session/store.ts";
import { createStore } from "../complete/create-store.ts";
import { MemoryDriver } from "./memory-driver.ts";

/** Options of `openMemoryStore`. */
export interface MemoryStoreOptions extends BlobOptions {
  /** Returns the current time (default: the system's clock). */
  readonly clock?: () => Date;
}

/** Opens a store that keeps its sessions in the memory of this process, for tests and for runs that need not be kept. */
export function openMemoryStore(options: MemoryStoreOptions = {}): SessionStore {
  checkOptionsOf(options, { clock: true, ...BLOB_OPTIONS } satisfies KeysOf<MemoryStoreOptions>, "openMemoryStore");
  checkClock(options.clock);
  const { clock = () => new Date() } = options;
  return createStore(new MemoryDriver(clock), options);
}
