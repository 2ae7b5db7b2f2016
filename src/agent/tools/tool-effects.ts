/** The most that calls of a tool can do: read, change files or other data, or anything. */
export type ToolEffects = "reads" | "writes" | "commands";

/** Whether a value is a valid `ToolEffects`. */
export function isToolEffects(value: unknown): value is ToolEffects {
  return value === "reads" || value === "writes" || value === "commands";
}
