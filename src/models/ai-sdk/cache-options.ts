import { cacheLifetimeOf } from "../cache-rules.ts";
import { type CacheSetting, markedMessages } from "../wire/prompt-cache.ts";
import type { CallOptions, PromptMessage } from "./contract.ts";
import type { PreparedCall } from "./call-options.ts";
import type { NamedModel } from "./look-up.ts";

type Cache = CacheSetting<"5m" | "1h" | "24h">;
type ProviderOptions = NonNullable<CallOptions["providerOptions"]>;

/** Adds the provider options for caching the beginning of a request; providers without such options need nothing. */
export function withCache(
  { options, merged }: PreparedCall,
  model: NamedModel,
  cacheKey: string | undefined,
  cache: Cache | null,
): CallOptions {
  const maker = cache === null ? null : makerOf(model);
  if (cache === null || maker === null) return options;
  return maker === "openai" ? withKey(options, cacheKey, cache) : withMarkers(options, merged, cache);
}

/** How long the provider keeps what it caches of the requests to a model. */
export function cacheLifetime(model: NamedModel, cache: Cache | null): number {
  const maker = makerOf(model);
  const isTaken = maker === "openai" ? cache?.lifetime === "24h" : maker === "anthropic" && cache?.lifetime === "1h";
  return cacheLifetimeOf(maker ?? "", model.modelId, isTaken ? cache?.lifetime : undefined);
}

/** The maker whose options a provider takes: the AI SDK names a provider by its maker and API, such as `anthropic.messages`. */
function makerOf({ provider }: NamedModel): "anthropic" | "openai" | null {
  const names = provider.split(".");
  if (names.includes("anthropic")) return "anthropic";
  return names[0] === "openai" ? "openai" : null;
}

function withKey(options: CallOptions, cacheKey: string | undefined, { lifetime }: Cache): CallOptions {
  const added = {
    ...(cacheKey === undefined ? {} : { promptCacheKey: cacheKey }),
    ...(lifetime === "24h" ? { promptCacheRetention: lifetime } : {}),
  };
  if (Object.keys(added).length === 0) return options;
  const { openai, ...others } = options.providerOptions ?? {};
  return { ...options, providerOptions: { ...others, openai: { ...added, ...openai } } };
}

/** Cache breakpoints at the ends of the tools, the instructions, the last message, and of the request before. */
function withMarkers(options: CallOptions, merged: PreparedCall["merged"], { lifetime }: Cache): CallOptions {
  const ttl = lifetime === "1h" ? { ttl: lifetime } : {};
  const marker: ProviderOptions = { anthropic: { cacheControl: { type: "ephemeral", ...ttl } } };
  const roles = options.prompt.map((message) => (merged.has(message) ? "merged" : message.role));
  const { last, before } = markedMessages(roles);
  const ends = new Set([roles.lastIndexOf("system"), before, last]);
  const { tools } = options;
  return {
    ...options,
    prompt: options.prompt.map((message, index): PromptMessage => {
      return ends.has(index) ? { ...message, providerOptions: { ...message.providerOptions, ...marker } } : message;
    }),
    ...(tools === undefined
      ? {}
      : {
          tools: tools.map((tool, index) => {
            return index < tools.length - 1 ? tool : ({ ...tool, providerOptions: marker } as typeof tool);
          }),
        }),
  };
}
