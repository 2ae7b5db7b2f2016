/** Something that keeps a conversation turn by turn. A turn is a user message and a reply, each of 500 characters. */
export interface Peer {
  readonly label: string;
  /** What it was installed as; null for what needs no installation. */
  readonly installation: string | null;
  /** What a reader must know to judge the numbers. */
  readonly note?: string;
  /** What `readContext` reads; all of the conversation unless given. */
  readonly context?: string;
  /** How many turns one round takes, at either length. Few where one takes seconds. */
  readonly turnsEachRound: { readonly small: number; readonly large: number };
  /** Begins a conversation in an empty folder. */
  open(folder: string): Promise<Conversation>;
}

/** One conversation in a folder of its own. */
export interface Conversation {
  /** Brings an empty conversation to so many turns, as fast as it can be done. */
  fill(turns: number): Promise<void>;
  /** Keeps one more turn. Resolves when it is kept. */
  turn(index: number): Promise<void>;
  /** Goes before a series of turns whose first one would cost more than the others. */
  warmUp?(): Promise<void>;
  /** Moves what a database still has in its write-ahead log to where it stays. */
  settle?(): Promise<void>;
  /** Lets go of everything that was opened, so that the two below begin afresh. */
  close(): Promise<void>;
  /** Opens what is stored and gives the number of messages that the next request to a model would have. */
  readContext(): Promise<number>;
  /** Where it can be done: lets the next request begin with a summary, and keep the last `messages` messages. */
  compact?(messages: number): Promise<void>;
}
