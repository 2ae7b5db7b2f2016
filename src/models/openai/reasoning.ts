import type { ModelRequest } from "../../agent/model/model.ts";

/** How much a model is asked to think, or undefined to leave it to the model. */
export function effortOf(level: ModelRequest["thinkingLevel"]): string | undefined {
  return level === undefined || level === "" || level === "off" ? undefined : level;
}

/** Whether a model thinks before it answers, judged by its name. */
export function thinks(id: string): boolean {
  return /^(o\d|gpt-[5-9]|gpt-oss|codex)/.test(id) && !id.includes("chat");
}
