import type { Agent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import type { ScriptedReply } from "../../src/models/index.ts";
import { answering } from "./runs-agents.ts";

/** A call of one of the clerk's tools. */
export const call = (name: string, input: object = {}, id = name): { id: string; name: string; arguments: string } => ({
  id,
  name,
  arguments: JSON.stringify(input),
});

/** An answer with thinking and calls. */
export const calls = (...toolCalls: readonly ReturnType<typeof call>[]): ScriptedReply => ({
  role: "assistant",
  content: [{ type: "thinking", text: "Which tool?" }],
  toolCalls,
  stopReason: "tool_calls",
});

/** Looks something up; finds nothing if its argument says so. */
export const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: { type: "object", properties: { at: { type: "string" } } },
  effects: "reads",
  execute: ({ at }: { at?: string }) => {
    if (at === "nothing") throw new Error("There is nothing there.");
    return { seen: at ?? "all" };
  },
});
/** Needs approval before it pays. */
export const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: { type: "object", properties: { euros: { type: "number" } } },
  needsApproval: true,
  execute: () => "paid",
});

/** An agent with scripted replies, a tool that looks something up, and one that needs approval to pay. */
export const clerk = (...replies: readonly ScriptedReply[]): Agent => answering(replies, [look, pay]);
