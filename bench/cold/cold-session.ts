/** A conversation of one contender, in a new process. */
export interface ColdSession {
  /** The key with which `open` finds the conversation again. */
  readonly key: string;
  append(messages: number): Promise<void>;
  /** Opens the conversation and reads the context of the next request; resolves to the number of messages. */
  context(): Promise<number>;
  fork(): Promise<void>;
  close(): Promise<void>;
}

/** Does everything that is not measured: imports modules, and opens the store of the conversations. */
export type OpenCold = (folder: string, key: string | null) => Promise<ColdSession>;
