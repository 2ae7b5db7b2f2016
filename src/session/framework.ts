import type { Entry } from "./log/entry.ts";
import type { SessionHeader } from "./log/header.ts";

/** The frameworks that keep threads in sessions, by the field of the metadata that holds the id of such a thread. */
const FRAMEWORKS: Readonly<Record<string, string>> = {
  langgraphThread: "LangGraph",
  openaiAgentsSession: "OpenAI Agents",
};

/** A session that another framework keeps its thread in. */
export interface FrameworkThread {
  /** The name of the framework. */
  readonly framework: string;
  /** The id that the framework knows the thread by. */
  readonly thread: string;
}

/** Which framework keeps a thread in a session; null for one of our own. */
export function frameworkOf({ metadata }: Pick<SessionHeader, "metadata">): FrameworkThread | null {
  for (const [field, framework] of Object.entries(FRAMEWORKS)) {
    const thread = Object.hasOwn(metadata, field) ? metadata[field] : undefined;
    if (typeof thread === "string") return { framework, thread };
  }
  return null;
}

/** The framework that an entry is a record of: data that it needs and nobody said; null for all other entries. */
export function recordOf(entry: Entry): string | null {
  if (entry.type === "message") {
    return Object.hasOwn(entry.message.metadata ?? {}, "openaiAgentsUsage") ? "OpenAI Agents" : null;
  }
  if (entry.type !== "custom") return null;
  if (entry.customType.startsWith("langgraph.")) return "LangGraph";
  return entry.customType.startsWith("openai-agents.") ? "OpenAI Agents" : null;
}
