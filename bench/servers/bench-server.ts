import type { SessionStore } from "skein";
import type { ServerKind } from "./server-kind.ts";

/** A server of one kind, and a place on it that is the benchmark's alone. Disposing removes everything there. */
export interface BenchServer extends AsyncDisposable {
  readonly kind: ServerKind;
  /** What the store is compared with; the first one has the targets. */
  readonly bares: readonly BareClient[];
  /** Opens a store; those of one name hold the same sessions. */
  openStore(name: string): Promise<SessionStore>;
}

/** A client that writes the bytes of an entry and does nothing else. */
export interface BareClient {
  readonly label: string;
  write(row: BareRow): Promise<unknown>;
}

/** What a bare client writes. */
export interface BareRow {
  readonly session: number;
  readonly id: string;
  /** The entry as JSON. */
  readonly body: string;
}
