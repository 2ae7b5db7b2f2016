import { registerModelProvider } from "../agent/model/model-providers.ts";
import { anthropic } from "./anthropic/anthropic.ts";
import { offline } from "./offline.ts";
import { openai } from "./openai/openai.ts";

registerModelProvider("openai", openai);
registerModelProvider("anthropic", anthropic);
registerModelProvider("offline", (_id, options) => offline(options));
