import { nextSlice } from "../../internal/long-work.ts";
import { entryTokens, estimateTextTokens, type TextTokenizer } from "../../session/context/tokens.ts";
import type { Entry } from "../../session/log/entry.ts";

let loaded: Promise<TextTokenizer> | null = null;

/** A real tokenizer where `gpt-tokenizer` is installed, else the rule of thumb. */
export function loadTokenizer(): Promise<TextTokenizer> {
  loaded ??= findTokenizer();
  return loaded;
}

/**
 * A tokenizer that knows what entries take already. To count a mebibyte takes a tenth of a second, so that it is done in
 * slices and each text is counted once.
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
    // Inside of `try`, so that bundlers take a package that is not there for one that may be missing.
    const { countTokens } = await import("gpt-tokenizer");
    // Text that looks like one of the model's control tokens is ordinary text here.
    const count = (text: string): number => countTokens(text, { allowedSpecial: "all" });
    // A version without this function counts nothing, and the rule of thumb does.
    count("");
    return inPieces(count);
  } catch {
    return estimateTextTokens;
  }
}

/** The tokenizer takes time quadratic in the length of a run without spaces: a second for 40,000 of one character. */
const PIECE_CHARACTERS = 1000;
/** How much is counted before others have their turn; whole pieces, so that it comes to the same. */
const SLICE_CHARACTERS: number = 64 * PIECE_CHARACTERS;

function inPieces(tokenizer: TextTokenizer): TextTokenizer {
  return (text) => {
    let tokens = 0;
    for (let at = 0; at < text.length; at += PIECE_CHARACTERS)
      tokens += tokenizer(text.slice(at, at + PIECE_CHARACTERS));
    return tokens;
  };
}
