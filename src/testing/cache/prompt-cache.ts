import { checkArgument, checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError, show } from "../../session/errors.ts";
import { AnthropicCache } from "./anthropic-cache.ts";
import { OpenAICache } from "./openai-cache.ts";

/** Options of the emulated cache. */
export interface PromptCacheInit {
  readonly provider: "anthropic" | "openai";
  /** The model whose rules apply to a body without a model. */
  readonly model: string;
  /** The time in milliseconds (default: `Date.now`). */
  readonly clock?: () => number;
}

const KEYS: KeysOf<PromptCacheInit> = { provider: true, model: true, clock: true };

/** How many tokens of a request came from where. The three sum up to the tokens of the request. */
export interface PromptCacheUsage {
  /** Tokens that were read from the cache. */
  readonly read: number;
  /** Tokens that were written to it. */
  readonly written: number;
  /** How many of those were written for an hour. */
  readonly writtenForAnHour: number;
  /** Tokens that were neither read nor written. */
  readonly fresh: number;
}

/** An emulated prompt cache of a provider. */
export interface PromptCache {
  /**
   * Returns what the provider would read from and write to its cache for the body of a request; later requests find
   * what it wrote.
   *
   * @throws {SessionError} `INVALID_OPTION` for a body that the provider refuses: one with more markers than it
   * accepts, or without messages.
   */
  ask(body: object): PromptCacheUsage;
}

/**
 * An emulation of the prompt cache of a provider, by the rules that it documents: the order of tools, instructions and
 * messages, exact prefixes, markers and how far it looks back from them, the least length, what invalidates a part, and
 * lifetimes. Tokens are counted as one for every four characters of text.
 *
 * It is deterministic: the same bodies at the same times give the same numbers.
 *
 * @throws {SessionError} `INVALID_OPTION` for another provider.
 */
export function promptCache(init: PromptCacheInit): PromptCache {
  checkOptionsOf(init, KEYS, "promptCache");
  const { provider, model, clock = Date.now } = init;
  checkArgument(typeof model === "string", model, "promptCache", "the name of a model in model");
  checkArgument(typeof clock === "function", clock, "promptCache", "a function in clock");
  if (provider === "anthropic") return new AnthropicCache(model, clock);
  if (provider === "openai") return new OpenAICache(model, clock);
  throw new SessionError(
    "INVALID_OPTION",
    `There is no prompt cache of ${show(provider)} to emulate; choose anthropic or openai.`,
  );
}
