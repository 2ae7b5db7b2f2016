import { createModel, type Model, SessionError } from "../../index.ts";

/** Some models of each provider, the most capable first. */
const IDS: Readonly<Record<string, readonly string[]>> = {
  anthropic: ["claude-opus-5", "claude-sonnet-4-6", "claude-haiku-4-5"],
  openai: ["gpt-5.5", "gpt-5.4", "gpt-5.4-mini"],
};

/** The models that can be chosen here, and why those of a provider cannot although its key is set. */
export interface OfferedModels {
  readonly models: readonly Model[];
  readonly problems: readonly string[];
}

/** Finds the models that can be chosen here: the offline model, and those of providers whose key is set and package installed. */
export async function offeredModels(): Promise<OfferedModels> {
  const models = [createModel("offline")];
  const problems: string[] = [];
  for (const [provider, ids] of Object.entries(IDS)) {
    try {
      const ofProvider = ids.map((id) => createModel(`${provider}/${id}`));
      await ofProvider[0]?.prepare?.();
      models.push(...ofProvider);
    } catch (error) {
      if (!(error instanceof SessionError)) throw error;
      if (error.code !== "KEY_MISSING") problems.push(error.message);
    }
  }
  return { models, problems };
}
