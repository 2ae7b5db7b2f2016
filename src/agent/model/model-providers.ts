import { checkArgument, isObject } from "../../session/check-arguments.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { Model } from "./model.ts";

/** The options of a model made by name; each provider takes those it knows. */
export interface ModelProviderOptions {
  readonly apiKey?: string;
  readonly baseURL?: string;
  readonly contextWindow?: number;
  readonly timeoutMs?: number;
  readonly [option: string]: unknown;
}

/** Makes the model of an id, which is empty when the name has none. */
export type ModelProviderFactory = (id: string, options: ModelProviderOptions) => Model;

const factories = new Map<string, ModelProviderFactory>();

/**
 * Makes models of another kind known to `createModel`; one of the same kind takes the place of the one before.
 *
 * @example
 * registerModelProvider("echo", (id) => ({
 *   provider: "echo",
 *   id,
 *   complete: async ({ messages }) => ({ role: "assistant", content: textOf(messages.at(-1)?.content ?? null) }),
 * }));
 * const model = createModel("echo/loud");
 *
 * @throws {SessionError} `INVALID_OPTION` for a kind that is empty or holds a slash.
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
 * The model of a name such as `openai/gpt-5-mini`: the provider's kind up to the first slash, then its model's id.
 *
 * @example
 * const model = createModel("openai/gpt-5-mini");
 *
 * @throws {SessionError} `INVALID_OPTION` for a kind that nobody registered, and whatever the provider refuses.
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
