import { createAgent, defineTool, openManager } from "skein";
import { anthropic } from "skein/anthropic";
import { openai } from "skein/openai";
import type { EmulatedModel } from "./emulator-server.ts";

/** A part of a session, in a process of its own. */
export interface TurnsInput extends EmulatedModel {
  readonly url: string;
  readonly path: string;
  /** The session to continue; null for a new one. */
  readonly sessionId: string | null;
  readonly turns: number;
}

/** Takes some turns with a tool in a session, and returns its id. */
export async function takeTurns({ provider, model: id, url, path, sessionId, turns }: TurnsInput): Promise<string> {
  await using manager = await openManager({ store: `sqlite:${path}` });
  const { stream: _, ...model } =
    provider === "anthropic"
      ? anthropic(id, { apiKey: "none", baseURL: url })
      : openai(id, { apiKey: "none", baseURL: `${url}/v1`, cache: true });
  const look = defineTool({
    name: "look",
    description: "Looks at a file.",
    parameters: { type: "object" },
    effects: "reads",
    execute: () => "a line of the file\n".repeat(40),
  });
  const prompt = `You answer questions about files. ${"Every rule of the house is written down here. ".repeat(100)}`;
  const agent = createAgent({ name: "reader", prompt, model, tools: [look], compaction: false });
  let current = sessionId;
  for (let turn = 0; turn < turns; turn++) {
    const question = `Question ${turn}: what does the file say?`;
    const run = current === null ? manager.run(agent, question) : manager.run(current, agent, question);
    current = (await run).sessionId;
  }
  return current as string;
}
