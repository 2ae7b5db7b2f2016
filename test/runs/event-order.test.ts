import { expect, test } from "vitest";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import type { RunEvent } from "../../src/agent/run-event.ts";
import type { GroupEvent } from "../../src/group/group-event.ts";
import { GroupSession } from "../../src/group/group-session.ts";
import { scripted } from "../../src/models/scripted.ts";
import { type Gate, gate } from "../http/runs-agents.ts";
import { openRunServer } from "../http/runs-server.ts";
import { callOf, calling, toolOf } from "../sample-run.ts";

/** An agent that asks its model once the gate is open, calls two tools, and then answers with a text. */
function worker(name: string, start: Gate): Agent {
  const first = async () => {
    await start.opened;
    return { ...calling(callOf("1", "look"), callOf("2", "note")), usage: USAGE };
  };
  const slow = toolOf("look", () => new Promise((resolve) => setTimeout(resolve, 5, "seen")), { idempotent: true });
  const tools = [slow, toolOf("note")];
  return createAgent({ name, prompt: "", builtInTools: false, tools, model: scripted([first, `${name} is done.`]) });
}

const USAGE = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

function nameOf(event: { readonly type: string }): string {
  const { type, agent = "", callId = "" } = event as { type: string; agent?: string; callId?: string };
  return [type, agent, callId].filter((part) => part !== "").join(" ");
}

test.each(["an agent", "a group"])(
  "a listener in the process of %s gets its recorded and live events in the same order as a reader over HTTP",
  async (kind) => {
    const here: string[] = [];
    const listener = (event: RunEvent | GroupEvent): void => void here.push(nameOf(event));
    const start = gate();
    const names = kind === "a group" ? ["ann", "ben"] : ["ann"];
    const [agent, ...others] = names.map((name) => worker(name, start)) as [Agent, ...Agent[]];
    const listened: Agent = {
      ...agent,
      run: (input, options) => {
        const run = agent.run(input, options);
        run.listen(listener);
        return run;
      },
    };
    const { client, sessionId } = await openRunServer({
      ...(kind === "an agent" ? { agents: { ann: listened } } : {}),
      groups: (manager) => {
        if (kind === "an agent") return {};
        const panel = new GroupSession({ manager });
        for (const each of [agent, ...others]) panel.addAgent(each);
        const stream = panel.stream.bind(panel);
        panel.stream = (id, message, options) => {
          const run = stream(id, message, { ...options, maxRounds: 1 });
          run.listen(listener);
          return run;
        };
        return { panel };
      },
    });
    const who = kind === "a group" ? { group: "panel" } : { agent: "ann" };
    const { runId } = await client.runs.start(sessionId, { ...who, input: "Go." });
    const there: string[] = [];
    for await (const event of client.runs.events(sessionId, runId)) {
      there.push(nameOf(event));
      // The reader has joined before anything is asked.
      if (event.type === "round-started") start.open();
    }
    expect(there).toEqual(here);
    expect(there.at(-1)).toBe(kind === "a group" ? "group-finished" : "run-finished");
    expect(there.filter((name) => name.startsWith("tool-finished"))).toHaveLength(2 * names.length);
  },
);
