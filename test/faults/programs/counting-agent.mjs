import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { createAgent, defineTool } from "skein";

/** Its texts besides calls, and at the end. No letter occurs twice in a text, so that a repeated part is visible. */
const working = "working";
const done = "done";

/**
 * An agent that in each round looks, notes and pays (with approval), and then stops. Its input is "go" and the run's
 * id. Each call with an effect writes a line to a file: run, round and tool. Call ids repeat in all rounds.
 * @param {object} init
 * @param {string} init.effects the file
 * @param {number} init.rounds
 * @param {number} [init.pauseMs] how long each step takes at most
 * @param {(runId: string) => void} [init.at] called before every step
 */
export function countingAgent({ effects, rounds, pauseMs = 10, at = () => {} }) {
  const step = () => wait(Math.random() * pauseMs);

  /**
   * @param {string} name
   * @param {object} more
   */
  const tool = (name, more = {}) =>
    defineTool({
      name,
      description: name,
      parameters: { type: "object", properties: { round: { type: "integer" } }, required: ["round"] },
      async execute({ round }, { runId }) {
        at(runId);
        if (name !== "look") appendFileSync(effects, `${runId} ${round} ${name}\n`);
        await step();
        return "ok";
      },
      ...more,
    });

  /**
   * @param {import("skein").ModelRequest} request
   * @returns {import("skein").ModelReply}
   */
  const replyTo = ({ messages }) => {
    const said = messages.slice(messages.findLastIndex(({ role }) => role === "user"));
    at(String(said[0]?.content).slice("go ".length));
    const round = said.filter(({ role }) => role === "assistant").length;
    if (round >= rounds) return { role: "assistant", content: done };
    const call = (/** @type {string} */ name) => ({ id: name, name, arguments: JSON.stringify({ round }) });
    return { role: "assistant", content: working, toolCalls: ["look", "note", "pay"].map(call) };
  };

  return createAgent({
    name: "worker",
    prompt: "",
    model: {
      provider: "torture",
      id: "counting",
      complete: async (request) => replyTo(request),
      async *stream(request) {
        const reply = replyTo(request);
        for (const text of String(reply.content)) {
          await step();
          yield { type: "text-delta", text };
        }
        yield { type: "finish", stopReason: reply.toolCalls === undefined ? "stop" : "tool_calls", reply };
      },
    },
    builtInTools: false,
    tools: [tool("look", { idempotent: true }), tool("note"), tool("pay", { exclusive: true, needsApproval: true })],
  });
}
