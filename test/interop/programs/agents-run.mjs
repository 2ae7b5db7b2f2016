// One run of an agent that calls a tool and hands off to another agent, on a stored session; prints the answer.
import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import { openStore } from "skein";
import { SkeinSession } from "skein/openai-agents";
import { z } from "zod";

const [url = "", modelUrl = "", input = ""] = process.argv.slice(2);
const store = await openStore(url);
const modelProvider = new OpenAIProvider({ apiKey: "none", baseURL: `${modelUrl}/v1`, useResponses: false });
const runner = new Runner({ modelProvider, model: "a-model", tracingDisabled: true });
const weather = tool({
  name: "weather",
  description: "The weather of a place.",
  parameters: z.object({ place: z.string() }),
  execute: async ({ place }) => `It rains in ${place}.`,
});
const booker = new Agent({ name: "Booker", instructions: "You book." });
const clerk = new Agent({ name: "Clerk", instructions: "You help.", tools: [weather], handoffs: [booker] });
const session = new SkeinSession(store, { sessionId: "trip" });
const result = await runner.run(clerk, input, { session, stream: true });
await result.completed;
console.log(result.finalOutput);
await store.close();
