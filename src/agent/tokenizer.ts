import { estimateTextTokens, type TextTokenizer } from "../session/tokens.ts";

let loaded: Promise<TextTokenizer> | null = null;

/** A real tokenizer where `gpt-tokenizer` is installed, else the rule of thumb. */
export function loadTokenizer(): Promise<TextTokenizer> {
  loaded ??= import("gpt-tokenizer").then(
    // Text that looks like one of the model's control tokens is ordinary text here.
    ({ countTokens }) => (text: string) => countTokens(text, { allowedSpecial: "all" }),
    () => estimateTextTokens,
  );
  return loaded;
}
