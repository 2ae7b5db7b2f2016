import { createHeader } from "../../src/session/log/header.ts";

const TIME = "2026-01-01T00:00:00.000Z";

/** The header of an export, with the given invalid fields. */
export function header(lies: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { ...createHeader({ id: "forged", createdAt: TIME, userId: "someone" }), ...lies };
}

/** Entries as a log has them, one hanging on the other; `id` and `parentId` can be given. */
export function chain(...entries: readonly Readonly<Record<string, unknown>>[]): Record<string, unknown>[] {
  let parentId: unknown = null;
  return entries.map((entry, index) => {
    const made = { id: `e${index}`, parentId, timestamp: TIME, ...entry };
    if (NODES.has(String(made["type" as never]))) parentId = made.id;
    return made;
  });
}

const NODES: ReadonlySet<string> = new Set([
  "message",
  "custom",
  "custom_message",
  "variables",
  "compaction",
  "branch_summary",
]);

/** A user message. */
export function said(content: unknown, rest: object = {}): Record<string, unknown> {
  return { type: "message", message: { role: "user", content, ...rest } };
}

/** An answer that calls a tool. */
export function called(name: string, args: object, id = "c1"): Record<string, unknown> {
  const toolCalls = [{ id, name, arguments: JSON.stringify(args) }];
  return { type: "message", message: { role: "assistant", content: null, toolCalls, stopReason: "tool_calls" } };
}

/** That a run has begun. */
export function runStarted(rest: object = {}): Record<string, unknown> {
  return { type: "run", runId: "r1", phase: "started", ...rest };
}
