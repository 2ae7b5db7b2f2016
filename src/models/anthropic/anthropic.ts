import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import type { Model } from "../../agent/model/model.ts";
import { SessionError, show } from "../../session/errors.ts";
import { apiKeyFor } from "../api-key.ts";
import { cacheLifetimeOf } from "../cache-rules.ts";
import { cacheSetting } from "../wire/prompt-cache.ts";
import { checkModelId, HABITS, once, WIRE_OPTIONS, type WireModelOptions, wireModel } from "../wire/wire-model.ts";
import { type AnthropicClient, loadAnthropicClient } from "./anthropic-client.ts";
import { messagesWire } from "./messages-wire.ts";

/** Options of `anthropic`. */
export interface AnthropicOptions extends WireModelOptions {
  /** Default: the environment's `ANTHROPIC_API_KEY`. For an endpoint without keys, pass any text. */
  readonly apiKey?: string;
  /** The URL of a compatible endpoint, without `/v1`. */
  readonly baseURL?: string;
  /** Headers for every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Your own client of the `@anthropic-ai/sdk` package, instead of a key and a URL. */
  readonly client?: AnthropicClient;
  /**
   * Whether requests have cache breakpoints, and how long cached prefixes are kept after their last use (default: five
   * minutes). Writing for an hour costs more.
   */
  readonly cache?: boolean | { readonly lifetime?: "5m" | "1h" };
  /** Whether a thinking level is sent as a token budget or as an effort (default: judged by the model's id). */
  readonly thinking?: "budget" | "adaptive";
}

const OPTIONS: KeysOf<AnthropicOptions> = {
  ...WIRE_OPTIONS,
  apiKey: true,
  baseURL: true,
  headers: true,
  client: true,
  cache: true,
  thinking: true,
};

/**
 * A model of Anthropic, on the official client.
 *
 * The client's own retries are off: only the agent loop retries. An answer that holds more than text and calls (such as
 * thinking with signatures) keeps the provider's blocks in `providerData`, and they are sent back verbatim.
 *
 * @throws {SessionError} `KEY_MISSING` without a key, `INVALID_OPTION` for an invalid option.
 */
export function anthropic(id: string, options: AnthropicOptions = {}): Model {
  checkModelId(id, "anthropic");
  checkOptionsOf(options, OPTIONS, "anthropic", HABITS);
  const { client, baseURL, headers, thinking } = options;
  const cache = cacheSetting(options.cache, ["5m", "1h"], "anthropic");
  if (thinking !== undefined && thinking !== "budget" && thinking !== "adaptive")
    throw new SessionError("INVALID_OPTION", `There is no thinking ${show(thinking)}; choose budget or adaptive.`);
  const apiKey = client === undefined ? apiKeyFor("anthropic", options.apiKey) : undefined;
  return wireModel<AnthropicClient>({
    wire: messagesWire(id, { cache, thinking }),
    id,
    options,
    secret: apiKey,
    cacheLifetimeMs: cacheLifetimeOf("anthropic", id, cache?.lifetime),
    clientTimeoutMs: client?.timeout,
    client: once(async () =>
      apiKey === undefined
        ? (client as AnthropicClient)
        : loadAnthropicClient({
            apiKey,
            ...(baseURL === undefined ? {} : { baseURL }),
            ...(headers === undefined ? {} : { headers }),
          }),
    ),
  });
}
