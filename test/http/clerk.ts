import type { Agent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import type { ScriptedReply } from "../../src/models/index.ts";
import { answering } from "./runs-agents.ts";

/** A call of a tool of the clerk. */
export const call = (name: string, input: object = {}, id = name): { id: string; name: string; arguments: string } => ({
  id,
  name,
  arguments: JSON.stringify(input),
});

/** An answer that thinks and calls. */
export const calls = (...toolCalls: readonly ReturnType<typeof call>[]): ScriptedReply => ({
  role: "assistant",
  content: [{ type: "thinking", text: "Which tool?" }],
  toolCalls,
  stopReason: "tool_calls",
});

/** Looks, and finds nothing where it is told so. */
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
/** Asks before it pays. */
export const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: { type: "object", properties: { euros: { type: "number" } } },
  needsApproval: true,
  execute: () => "paid",
});

/** An agent that says these replies, with a tool that looks and one that asks before it pays. */
export const clerk = (...replies: readonly ScriptedReply[]): Agent => answering(replies, [look, pay]);
