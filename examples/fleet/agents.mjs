// The agents of the fleet, for servers and workers alike: skein serve --agents, skein worker --agents.
import { createAgent, createModel, defineTool } from "skein";

const time = defineTool({
  name: "time",
  description: "Says what time it is.",
  parameters: { type: "object", properties: {} },
  execute: () => new Date().toISOString(),
});

export const agents = [
  createAgent({
    name: "clerk",
    prompt: "You answer in one sentence.",
    model: createModel(process.env.CLERK_MODEL ?? "offline"),
    tools: [time],
    builtInTools: false,
  }),
];
