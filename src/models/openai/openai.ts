import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import type { Model } from "../../agent/model/model.ts";
import { SessionError, show } from "../../session/errors.ts";
import { apiKeyFor } from "../api-key.ts";
import { cacheLifetimeOf } from "../cache-rules.ts";
import { cacheSetting } from "../wire/prompt-cache.ts";
import { checkModelId, HABITS, once, WIRE_OPTIONS, type WireModelOptions, wireModel } from "../wire/wire-model.ts";
import { chatWire } from "./chat-wire.ts";
import { loadOpenAIClient, type OpenAIClient } from "./openai-client.ts";
import { responsesWire } from "./responses-wire.ts";

/** Options of `openai`. */
export interface OpenAIOptions extends WireModelOptions {
  /** Default: the environment's `OPENAI_API_KEY`. For an endpoint without keys, pass any text. */
  readonly apiKey?: string;
  /** The URL of a compatible endpoint, including `/v1` if it has one. */
  readonly baseURL?: string;
  /** `chat` (default): the Chat Completions API, which other endpoints support, too. `responses`: the Responses API. */
  readonly api?: "chat" | "responses";
  /** Headers for every request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly organization?: string;
  /** Your own client of the `openai` package, instead of a key and a URL. */
  readonly client?: OpenAIClient;
  /**
   * Whether requests name their prompt cache and mark its ends (default: only if they go to OpenAI or Azure, as other endpoints
   * may refuse these fields), and whether models that can keep what they cache for a day do so.
   */
  readonly cache?: boolean | { readonly lifetime?: "24h" };
}

const OPTIONS: KeysOf<OpenAIOptions> = {
  ...WIRE_OPTIONS,
  apiKey: true,
  baseURL: true,
  api: true,
  headers: true,
  organization: true,
  client: true,
  cache: true,
};

/**
 * A model of OpenAI or of any compatible endpoint, on the official client.
 *
 * The client's own retries are off: only the agent loop retries.
 *
 * @throws {SessionError} `KEY_MISSING` without a key, `INVALID_OPTION` for an invalid option.
 */
export function openai(id: string, options: OpenAIOptions = {}): Model {
  checkModelId(id, "openai");
  checkOptionsOf(options, OPTIONS, "openai", HABITS);
  const { api = "chat", client, baseURL, organization, headers } = options;
  if (api !== "chat" && api !== "responses")
    throw new SessionError("INVALID_OPTION", `There is no api ${show(api)} of openai; choose chat or responses.`);
  const cache = cacheSetting(options.cache, ["24h"], "openai");
  const apiKey = client === undefined ? apiKeyFor("openai", options.apiKey) : undefined;
  return wireModel<OpenAIClient>({
    wire: api === "chat" ? chatWire(id, cache) : responsesWire(id, cache),
    id,
    options,
    secret: apiKey,
    cacheLifetimeMs: cacheLifetimeOf("openai", id, cache?.lifetime),
    clientTimeoutMs: client?.timeout,
    client: once(async () =>
      apiKey === undefined
        ? (client as OpenAIClient)
        : loadOpenAIClient({
            apiKey,
            ...(baseURL === undefined ? {} : { baseURL }),
            ...(organization === undefined ? {} : { organization }),
            ...(headers === undefined ? {} : { headers }),
          }),
    ),
  });
}
