import { estimateTextTokens, type TextTokenizer } from "../../session/context/tokens.ts";

let loaded: Promise<TextTokenizer> | null = null;

/** A real tokenizer where `gpt-tokenizer` is installed, else the rule of thumb. */
export function loadTokenizer(): Promise<TextTokenizer> {
  loaded ??= findTokenizer();
  return loaded;
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

function inPieces(tokenizer: TextTokenizer): TextTokenizer {
  return (text) => {
    let tokens = 0;
    for (let at = 0; at < text.length; at += PIECE_CHARACTERS)
      tokens += tokenizer(text.slice(at, at + PIECE_CHARACTERS));
    return tokens;
  };
}
