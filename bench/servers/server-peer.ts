import type { Conversation } from "../peers/peer.ts";
import type { ServerKind } from "./server-kind.ts";

/** A library that stores conversations on a server. */
export interface ServerPeer {
  readonly label: string;
  readonly server: ServerKind;
  /** The name of its installation; null if it needs none. */
  readonly installation: string | null;
  /** A note for the reader of the numbers. */
  readonly note?: string;
  /** How many turns are timed together (default 4). */
  readonly turnsEachRound?: number;
  /** Connects. @throws if the server lacks a feature that the peer needs. */
  open(url: string): Promise<ServerConversations>;
}

/** Conversations over one connection; each call of `begin` makes a new, empty one. */
export interface ServerConversations extends AsyncDisposable {
  begin(): Promise<Pick<Conversation, "fill" | "turn">>;
}
