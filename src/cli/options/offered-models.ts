import { createModel, type Model, SessionError } from "../../index.ts";

/** Some models of each provider, the most capable first. */
const IDS: Readonly<Record<string, readonly string[]>> = {
  anthropic: ["claude-opus-5", "claude-sonnet-4-6", "claude-haiku-4-5"],
  openai: ["gpt-5.5", "gpt-5.4", "gpt-5.4-mini"],
};

/** The models that can be chosen here: the offline model, and those of providers whose key is set. */
export function offeredModels(): readonly Model[] {
  return [createModel("offline"), ...Object.entries(IDS).flatMap(([provider, ids]) => withKey(provider, ids))];
}

function withKey(provider: string, ids: readonly string[]): readonly Model[] {
  try {
    return ids.map((id) => createModel(`${provider}/${id}`));
  } catch (error) {
    if (error instanceof SessionError && error.code === "KEY_MISSING") return [];
    throw error;
  }
}
