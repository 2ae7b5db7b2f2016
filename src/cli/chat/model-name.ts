import type { Model } from "../../index.ts";

/** The name that a model is created by, such as `openai/gpt-5-mini`. */
export function modelName({ provider, id }: Pick<Model, "provider" | "id">): string {
  return `${provider}/${id}`;
}
