import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import type { Model } from "../../agent/model/model.ts";
import { SessionError, show } from "../../session/errors.ts";
import { apiKeyFor } from "../api-key.ts";
import { checkModelId, HABITS, once, WIRE_OPTIONS, type WireModelOptions, wireModel } from "../wire/wire-model.ts";
import { type AnthropicClient, loadAnthropicClient } from "./anthropic-client.ts";
import { messagesWire } from "./messages-wire.ts";

/** How a model of Anthropic, or of an endpoint that speaks like it, is reached. */
export interface AnthropicOptions extends WireModelOptions {
  /** The environment's `ANTHROPIC_API_KEY` if not given; an endpoint that needs no key takes any text. */
  readonly apiKey?: string;
  /** The address of a compatible endpoint, without `/v1`. */
  readonly baseURL?: string;
  /** Headers that go with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The caller's own client of the `@anthropic-ai/sdk` package, in place of a key and an address. */
  readonly client?: AnthropicClient;
  /** Whether the provider is asked to cache what a conversation begins with. True if not given. */
  readonly cache?: boolean;
  /** How a thinking level is asked for: as tokens, or as an effort. Judged by the model's id if not given. */
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
 * Nothing is sent twice: the client's own retries are off, and the loop's are the only ones. An answer that holds more
 * than text and calls (thinking, with its signatures) carries the provider's blocks in `providerData`, and goes back as
 * they were.
 *
 * @throws {SessionError} `KEY_MISSING` without a key, `INVALID_OPTION` for an option that cannot be.
 */
export function anthropic(id: string, options: AnthropicOptions = {}): Model {
  checkModelId(id, "anthropic");
  checkOptionsOf(options, OPTIONS, "anthropic", HABITS);
  const { client, baseURL, headers, cache = true, thinking } = options;
  if (thinking !== undefined && thinking !== "budget" && thinking !== "adaptive")
    throw new SessionError("INVALID_OPTION", `There is no thinking ${show(thinking)}; choose budget or adaptive.`);
  const apiKey = client === undefined ? apiKeyFor("anthropic", options.apiKey) : undefined;
  return wireModel<AnthropicClient>({
    wire: messagesWire(id, { cache, thinking }),
    id,
    options,
    secret: apiKey,
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
