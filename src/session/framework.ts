import type { Entry } from "./log/entry.ts";
import type { SessionHeader } from "./log/header.ts";

/** The frameworks that store threads as sessions, by the metadata field that holds the thread's id. */
const FRAMEWORKS: Readonly<Record<string, string>> = {
  langgraphThread: "LangGraph",
  openaiAgentsSession: "OpenAI Agents",
};

/** A thread of another framework that is stored as a session. */
export interface FrameworkThread {
  /** The name of the framework. */
  readonly framework: string;
  /** The thread's id in that framework. */
  readonly thread: string;
}

/** The framework whose thread a session stores; null for a session of our own. */
export function frameworkOf({ metadata }: Pick<SessionHeader, "metadata">): FrameworkThread | null {
  for (const [field, framework] of Object.entries(FRAMEWORKS)) {
    const thread = Object.hasOwn(metadata, field) ? metadata[field] : undefined;
    if (typeof thread === "string") return { framework, thread };
  }
  return null;
}

/** The framework for which an entry stores internal data; null for all other entries. */
export function recordOf(entry: Entry): string | null {
  if (entry.type === "message") {
    return Object.hasOwn(entry.message.metadata ?? {}, "openaiAgentsUsage") ? "OpenAI Agents" : null;
  }
  if (entry.type !== "custom") return null;
  if (entry.customType.startsWith("langgraph.")) return "LangGraph";
  return entry.customType.startsWith("openai-agents.") ? "OpenAI Agents" : null;
}
