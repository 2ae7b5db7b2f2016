export { openai, type OpenAIOptions } from "./openai.ts";
export type { OpenAIClient } from "./openai-client.ts";
