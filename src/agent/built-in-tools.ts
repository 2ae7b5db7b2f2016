import type { Tool } from "./tool.ts";

const builtIn = new Map<string, Tool>();

/** Makes tools part of every loop that does not decline them. */
export function registerBuiltInTools(tools: readonly Tool[]): void {
  for (const tool of tools) builtIn.set(tool.schema.name, tool);
}

/** The tools that every loop has, by name. */
export function builtInTools(): ReadonlyMap<string, Tool> {
  return builtIn;
}
