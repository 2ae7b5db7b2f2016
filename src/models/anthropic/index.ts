export { type AnthropicOptions, anthropic } from "./anthropic.ts";
export type { AnthropicClient } from "./anthropic-client.ts";
