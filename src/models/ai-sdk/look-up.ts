/** A model by the names that the AI SDK has for it. */
export interface NamedModel {
  readonly provider: string;
  readonly modelId: string;
}

/**
 * What a table by provider and model has for a model of the AI SDK. Its providers are named with their interface behind a
 * dot, such as `anthropic.messages`; gateways name the maker in the model's id, as in `anthropic/claude-haiku-4-5`.
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
