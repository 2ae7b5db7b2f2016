import { promptCache } from "skein/testing";

/** What share of all tokens is read from OpenAI's cache, by what its requests name as their key. */
export interface KeyShares {
  readonly root: number;
  readonly agent: number;
  readonly none: number;
}

const TURNS = 20;
const PAUSE_MS = 20_000;
const text = (tokens: number, word: string): string => word.padEnd(8, ".").repeat(tokens / 2);
const mark = { prompt_cache_breakpoint: { mode: "explicit" } };
/** Marked as Skein marks them for the models with breakpoints; others ignore it. */
const instructions = { role: "system", content: [{ type: "text", text: text(2_000, "rule"), ...mark }] };

/**
 * Has so many sessions of one agent at the same time, each with about one request in 20 seconds, and computes what the emulated cache
 * of OpenAI reads.
 */
export function compareKeys(sessions: number, model: string): KeyShares {
  const shareOf = (keyOf: (session: number) => string | undefined): number => {
    let now = 0;
    const cache = promptCache({ provider: "openai", model, clock: () => now });
    let [read, all] = [0, 0];
    for (let turn = 0; turn < TURNS; turn++) {
      for (const [place, session] of inSomeOrder(sessions, turn).entries()) {
        now = turn * PAUSE_MS + Math.floor((place * PAUSE_MS) / sessions);
        const said = Array.from({ length: turn + 1 }, (_, index) => [
          { role: "user", content: text(200, `q${session}-${index}`) },
          { role: "assistant", content: text(200, `a${session}-${index}`) },
        ]).flat();
        const key = keyOf(session);
        const messages = [instructions, ...said.slice(0, -1)];
        const usage = cache.ask({ model, messages, ...(key === undefined ? {} : { prompt_cache_key: key }) });
        read += usage.read;
        all += usage.read + usage.written + usage.fresh;
      }
    }
    return read / all;
  };
  return {
    root: shareOf((session) => `root-${session}`),
    agent: shareOf(() => "agent"),
    none: shareOf(() => undefined),
  };
}

/** The sessions in another order in every turn: people do not write in turn. */
function inSomeOrder(sessions: number, turn: number): number[] {
  const placeOf = (session: number): number =>
    (Math.imul(session + 1, 0x9e3779b1) ^ Math.imul(turn + 1, 0x85ebca6b)) >>> 0;
  const scrambled = (session: number): number => Math.imul(placeOf(session), 0xc2b2ae35) >>> 0;
  return Array.from({ length: sessions }, (_, session) => session).sort((a, b) => scrambled(a) - scrambled(b));
}
