import { createHash } from "node:crypto";

/** A JSON object whose fields have not been checked. */
export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** About as many tokens as an image or a file of ordinary size has. */
const DATA_TOKENS = 1_500;
const DATA_TYPES: ReadonlySet<unknown> = new Set([
  "image",
  "document",
  "image_url",
  "input_image",
  "input_file",
  "file",
]);

/** The tokens of a block: one for every four characters of what the model reads of it. */
export function tokensOf(block: unknown): number {
  if (typeof block === "string") return Math.ceil(block.length / 4);
  if (Array.isArray(block)) return block.reduce((sum: number, part) => sum + tokensOf(part), 0);
  const { type, text, content, thinking, output } = fieldsOf(block);
  if (DATA_TYPES.has(type)) return DATA_TOKENS;
  for (const said of [text, thinking]) if (typeof said === "string") return tokensOf(said);
  if (type === "tool_result") return tokensOf(content ?? "");
  if (type === "function_call_output") return tokensOf(output ?? "");
  return tokensOf(JSON.stringify(block));
}

/** The hash of a prefix, from that of the prefix before and what comes after it. */
export function chained(before: string, next: unknown): string {
  return createHash("sha256").update(before).update("\n").update(JSON.stringify(next)).digest("base64");
}
