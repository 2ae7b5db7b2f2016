import type { Client } from "skein/client";
import type { EntryOf } from "../../../src/session/log/entry.ts";
import { type Setup, SHARED_FIELDS } from "../../../src/session/log/setup.ts";

/** The recorded setup of an agent, with the texts that it shares with an earlier one. */
export type ReadSetup = Omit<Setup, "unchanged">;

/** The maximum number of agents whose setups are read. */
const AGENTS_MAX = 20;

/**
 * Reads the setups that hold on a path: what the requests of each agent have beside their messages.
 *
 * @param setups - the ids of the entries, by the name of the agent.
 */
export async function readSetups(
  client: Client,
  sessionId: string,
  setups: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<readonly ReadSetup[]> {
  const entryOf = async (id: string): Promise<EntryOf<"setup"> | null> => {
    const entry = await client.sessions.entry(sessionId, id, { signal });
    return entry.type === "setup" ? entry : null;
  };
  const read = async (id: string): Promise<ReadSetup[]> => {
    const entry = await entryOf(id);
    if (entry === null) return [];
    const { unchanged = {}, ...own } = entry;
    const shared: { [name: string]: unknown } = {};
    for (const field of SHARED_FIELDS) {
      const at = unchanged[field];
      if (at !== undefined) shared[field] = (await entryOf(at))?.[field];
    }
    return [{ ...own, ...shared }];
  };
  return (await Promise.all(Object.values(setups).slice(0, AGENTS_MAX).map(read))).flat();
}

/** About how many tokens a text has, where no tokenizer is at hand. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}
