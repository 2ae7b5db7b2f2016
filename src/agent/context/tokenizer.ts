import { nextSlice } from "../../internal/long-work.ts";
import { entryTokens, estimateTextTokens, type TextTokenizer } from "../../session/context/tokens.ts";
import type { Entry } from "../../session/log/entry.ts";

let loaded: Promise<TextTokenizer> | null = null;

/** Loads `gpt-tokenizer` if it is installed; otherwise uses the estimate of four characters per token. */
export function loadTokenizer(): Promise<TextTokenizer> {
  loaded ??= findTokenizer();
  return loaded;
}

/**
 * Returns a tokenizer with the counts of these entries already computed. Counting a mebibyte takes a tenth of a second,
 * so it is done in slices, and each text is counted once.
 */
export async function countAhead(entries: readonly Entry[], tokenizer?: TextTokenizer): Promise<TextTokenizer> {
  const count = tokenizer ?? (await loadTokenizer());
  const counted = new Map<string, number>();
  let characters = 0;
  for (const entry of entries) {
    const texts: string[] = [];
    entryTokens(entry, (text) => texts.push(text));
    for (const text of texts) {
      let tokens = 0;
      for (let at = 0; at < text.length; at += SLICE_CHARACTERS) {
        tokens += count(text.length <= SLICE_CHARACTERS ? text : text.slice(at, at + SLICE_CHARACTERS));
        characters += Math.min(text.length, SLICE_CHARACTERS);
        if (characters < SLICE_CHARACTERS) continue;
        characters = 0;
        await nextSlice();
      }
      counted.set(text, tokens);
    }
  }
  return (text) => counted.get(text) ?? count(text);
}

async function findTokenizer(): Promise<TextTokenizer> {
  try {
    // Inside `try`, so that bundlers treat the package as optional.
    const { countTokens } = await import("gpt-tokenizer");
    // Text that looks like a control token of the model is treated as ordinary text.
    const count = (text: string): number => countTokens(text, { allowedSpecial: "all" });
    // A version without this function throws here, and the estimate is used.
    count("");
    return inPieces(count);
  } catch {
    return estimateTextTokens;
  }
}

/** The tokenizer takes quadratic time for text without spaces: a second for 40,000 equal characters. */
const PIECE_CHARACTERS = 1000;
/**
 * How much is counted before the event loop gets a turn; a multiple of whole pieces, so that the result does not
 * change.
 */
const SLICE_CHARACTERS: number = 64 * PIECE_CHARACTERS;

function inPieces(tokenizer: TextTokenizer): TextTokenizer {
  return (text) => {
    let tokens = 0;
    for (let at = 0; at < text.length; at += PIECE_CHARACTERS)
      tokens += tokenizer(text.slice(at, at + PIECE_CHARACTERS));
    return tokens;
  };
}
