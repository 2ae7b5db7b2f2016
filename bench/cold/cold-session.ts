/** A conversation of one contender, in a process that has done nothing else yet. */
export interface ColdSession {
  /** What `open` needs to find the conversation again. */
  readonly key: string;
  append(messages: number): Promise<void>;
  /** Opens the conversation and reads what the next request to a model holds; resolves to the number of messages. */
  context(): Promise<number>;
  fork(): Promise<void>;
  close(): Promise<void>;
}

/** Makes ready all that is not measured: imports, and opens the place where conversations are. */
export type OpenCold = (folder: string, key: string | null) => Promise<ColdSession>;
