/** What calls of a tool can do at most: look, change files or other data, or anything. */
export type ToolEffects = "reads" | "writes" | "commands";

/** Whether a value is one of the words for effects. */
export function isToolEffects(value: unknown): value is ToolEffects {
  return value === "reads" || value === "writes" || value === "commands";
}
