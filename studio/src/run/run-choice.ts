/** The chosen runner: an agent (null: the server's first) with a model (null: the agent's own), or a group. */
export interface RunChoice {
  readonly agent: string | null;
  readonly model: string | null;
  readonly group: string | null;
}

/** The server's first agent with its own model. */
export const FIRST_AGENT: RunChoice = { agent: null, model: null, group: null };
