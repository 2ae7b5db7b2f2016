/** The provider and model names of the AI SDK. */
export interface NamedModel {
  readonly provider: string;
  readonly modelId: string;
}

/**
 * Looks up a model of the AI SDK in a table keyed by provider and model. The AI SDK appends the API to a provider's name, such
 * as `anthropic.messages`; gateways put the maker into the model id, such as `anthropic/claude-haiku-4-5`.
 */
export function lookUp<T>(
  table: (provider: string, model: string) => T | undefined,
  provider: string,
  modelId: string,
): T | undefined {
  const [, maker, model] = /^([^/]+)\/(.+)$/.exec(modelId) ?? [];
  const [own = ""] = provider.split(".");
  return table(own, modelId) ?? (maker === undefined || model === undefined ? undefined : table(maker, model));
}
