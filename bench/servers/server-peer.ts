import type { Conversation } from "../peers/peer.ts";
import type { ServerKind } from "./server-kind.ts";

/** Something that keeps conversations on a server. */
export interface ServerPeer {
  readonly label: string;
  readonly server: ServerKind;
  /** What it was installed as; null for what needs no installation. */
  readonly installation: string | null;
  /** What a reader must know to judge the numbers. */
  readonly note?: string;
  /** How many turns are timed together (default 4). */
  readonly turnsEachRound?: number;
  /** Connects. @throws when the server cannot do what the peer needs. */
  open(url: string): Promise<ServerConversations>;
}

/** Conversations over one connection; each call of `begin` makes another one, which is empty. */
export interface ServerConversations extends AsyncDisposable {
  begin(): Promise<Pick<Conversation, "fill" | "turn">>;
}
