import type { JsonValue } from "../../internal/json.ts";
import type { Entry } from "../log/entry.ts";

/** The files that a conversation's tools read and changed, sorted, without duplicates; a changed file is not listed as read. */
export type FileOperations = { readonly readFiles: readonly string[]; readonly modifiedFiles: readonly string[] };

const READING_TOOLS: ReadonlySet<string> = new Set(["read_workspace_file", "read_file", "read"]);
const MODIFYING_TOOLS: ReadonlySet<string> = new Set([
  "write_workspace_file",
  "edit_workspace_file",
  "write_file",
  "edit_file",
  "write",
  "edit",
]);

/** The file operations in the tool calls of the entries, added to those recorded by an earlier compaction. */
export function fileOperations(entries: readonly Entry[], earlier?: JsonValue): FileOperations {
  const read = new Set(textsOf(earlier, "readFiles"));
  const modified = new Set(textsOf(earlier, "modifiedFiles"));
  for (const entry of entries) {
    if (entry.type !== "message" || entry.message.role !== "assistant") continue;
    for (const call of entry.message.toolCalls ?? []) {
      const into = READING_TOOLS.has(call.name) ? read : MODIFYING_TOOLS.has(call.name) ? modified : null;
      const path = into === null ? null : pathArgument(call.arguments);
      if (path !== null) into?.add(path);
    }
  }
  return { readFiles: [...read].filter((path) => !modified.has(path)).sort(), modifiedFiles: [...modified].sort() };
}

function pathArgument(text: string): string | null {
  try {
    const value = JSON.parse(text) as { path?: unknown; file_path?: unknown } | null;
    const path = value?.path ?? value?.file_path;
    return typeof path === "string" && path !== "" ? path : null;
  } catch {
    return null; // A model may write invalid JSON as arguments; such a call touched no file.
  }
}

function textsOf(details: JsonValue | undefined, field: string): string[] {
  if (typeof details !== "object" || details === null || Array.isArray(details)) return [];
  const value = (details as { readonly [key: string]: JsonValue })[field];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}
