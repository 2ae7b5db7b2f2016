/** A library that stores a conversation turn by turn. A turn is a user message and a reply, each of 500 characters. */
export interface Peer {
  readonly label: string;
  /** The name of its installation; null if it needs none. */
  readonly installation: string | null;
  /** A note for the reader of the numbers. */
  readonly note?: string;
  /** The messages that `readContext` reads (default: the whole conversation). */
  readonly context?: string;
  /** How many turns one round has, at each length; few where a turn takes seconds. */
  readonly turnsEachRound: { readonly small: number; readonly large: number };
  /** Starts a conversation in an empty folder. */
  open(folder: string): Promise<Conversation>;
}

/** One conversation in a separate folder. */
export interface Conversation {
  /** Fills an empty conversation with turns, as fast as possible. */
  fill(turns: number): Promise<void>;
  /** Stores one more turn. Resolves when it is stored. */
  turn(index: number): Promise<void>;
  /** Called before a series of turns whose first one would cost more than the others. */
  warmUp?(): Promise<void>;
  /** Moves the content of a write-ahead log to the database. */
  settle?(): Promise<void>;
  /** Closes everything, so that the two methods below start cold. */
  close(): Promise<void>;
  /** Opens the stored conversation; resolves to the number of messages in the next request to a model. */
  readContext(): Promise<number>;
  /** If supported: compacts the conversation to a summary and the last `messages` messages. */
  compact?(messages: number): Promise<void>;
}
