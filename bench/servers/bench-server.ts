import type { SessionStore } from "skein";
import type { ServerKind } from "./server-kind.ts";

/** A server of one kind, with a private prefix on it. Disposing removes everything there. */
export interface BenchServer extends AsyncDisposable {
  readonly kind: ServerKind;
  /** The bare clients that the store is compared with; the first one has the targets. */
  readonly bares: readonly BareClient[];
  /** Opens a store; the same name gives the same sessions. */
  openStore(name: string): Promise<SessionStore>;
}

/** A client that only writes the bytes of an entry. */
export interface BareClient {
  readonly label: string;
  write(row: BareRow): Promise<unknown>;
}

/** A row that a bare client writes. */
export interface BareRow {
  readonly session: number;
  readonly id: string;
  /** The entry as JSON. */
  readonly body: string;
}
