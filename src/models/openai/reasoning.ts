import type { ModelRequest } from "../../agent/model/model.ts";

/** The reasoning effort for a thinking level; undefined to leave it to the model. */
export function effortOf(level: ModelRequest["thinkingLevel"]): string | undefined {
  return level === undefined || level === "" || level === "off" ? undefined : level;
}

/** Whether a model is a reasoning model, judged by its id. */
export function thinks(id: string): boolean {
  return /^(o\d|gpt-[5-9]|gpt-oss|codex)/.test(id) && !id.includes("chat");
}
