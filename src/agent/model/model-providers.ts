import { checkArgument, isObject } from "../../session/check-arguments.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { Model } from "./model.ts";

/** Options of a model created by name; each provider accepts those it knows. */
export interface ModelProviderOptions {
  readonly apiKey?: string;
  readonly baseURL?: string;
  readonly contextWindow?: number;
  readonly timeoutMs?: number;
  readonly [option: string]: unknown;
}

/** Creates the model with an id, which is empty if the name has none. */
export type ModelProviderFactory = (id: string, options: ModelProviderOptions) => Model;

const factories = new Map<string, ModelProviderFactory>();

/**
 * Registers a kind of model for `createModel`. It replaces an earlier registration of the same kind.
 *
 * @example
 * registerModelProvider("echo", (id) => ({
 *   provider: "echo",
 *   id,
 *   complete: async ({ messages }) => ({ role: "assistant", content: textOf(messages.at(-1)?.content ?? null) }),
 * }));
 * const model = createModel("echo/loud");
 *
 * @throws {SessionError} `INVALID_OPTION` for a kind that is empty or contains a slash.
 */
export function registerModelProvider(kind: string, factory: ModelProviderFactory): void {
  if (typeof kind !== "string" || kind === "" || kind.includes("/"))
    throw new SessionError("INVALID_OPTION", `A model provider cannot be called ${show(kind)}; use a name without /.`);
  checkArgument(
    typeof factory === "function",
    factory,
    "registerModelProvider",
    "a name, then a function that makes a model",
  );
  factories.set(kind, factory);
}

/**
 * Creates a model by name, such as `openai/gpt-5-mini`: the provider's kind before the first slash, the model's id
 * after it.
 *
 * @example
 * const model = createModel("openai/gpt-5-mini");
 *
 * @throws {SessionError} `INVALID_OPTION` for a kind that is not registered; errors of the provider are passed on.
 */
export function createModel(name: string, options: ModelProviderOptions = {}): Model {
  checkArgument(typeof name === "string", name, "createModel", 'a name such as "openai/gpt-5-mini"');
  checkArgument(isObject(options), options, "createModel", "an object of options");
  const [kind = "", ...rest] = name.split("/");
  const factory = factories.get(kind);
  if (factory !== undefined) return factory(rest.join("/"), options);
  const known = [...factories.keys()].sort().join(", ");
  throw new SessionError(
    "INVALID_OPTION",
    `There is no model provider for ${show(name)}; write "provider/model" with one of: ${known}.`,
  );
}
