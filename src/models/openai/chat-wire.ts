import type { Wire, WireAnswer } from "../wire/wire-model.ts";
import { fieldsOf, listOf, numberOf, stringOf } from "../wire/json-reader.ts";
import { malformed, WireError } from "../wire/failure.ts";
import type { Usage } from "../../session/usage.ts";
import type { OpenAICache } from "./cache-fields.ts";
import { chatBody } from "./chat-body.ts";
import { ChatAnswer } from "./chat-answer.ts";
import type { OpenAIClient } from "./openai-client.ts";
import { takesSchema } from "./output-format.ts";

/** The Chat Completions API. */
export function chatWire(id: string, cache: OpenAICache): Wire<OpenAIClient> {
  return {
    provider: "openai",
    body: (request, client) => chatBody(id, request, client.baseURL, cache),
    takesOutput: () => takesSchema(id),
    streaming: { stream_options: { include_usage: true } },
    send: (client, body, call) => client.chat.completions.create(body, call),
    readAnswer: (answer) => readCompletion(answer, id),
    startStream: () => {
      const answer = new ChatAnswer(id);
      return {
        read(event) {
          const chunk = fieldsOf(event);
          if (chunk["error"] !== undefined && chunk["error"] !== null) throw new WireError(fieldsOf(chunk["error"]));
          answer.named(stringOf(chunk["model"]));
          answer.spent(usageOf(chunk["usage"]));
          return listOf(chunk["choices"]).flatMap((item) => {
            const choice = fieldsOf(item);
            // Some endpoints send the last content in a whole message together with the finish reason.
            const deltas = answer.add(fieldsOf(choice["delta"] ?? choice["message"]));
            answer.stopped(choice["finish_reason"]);
            return deltas;
          });
        },
        finish: () => answer.finish(),
      };
    },
  };
}

function readCompletion(value: unknown, id: string): WireAnswer {
  const completion = fieldsOf(value);
  // Gateways respond with status 200 and an error in the body if the server behind them fails.
  if (completion["error"] !== undefined && completion["error"] !== null)
    throw new WireError(fieldsOf(completion["error"]));
  const [first] = listOf(completion["choices"]);
  const choice = fieldsOf(first);
  const message = choice["message"];
  if (typeof message !== "object" || message === null) throw malformed("openai", "it holds no message");
  const answer = new ChatAnswer(id);
  answer.named(stringOf(completion["model"]));
  answer.spent(usageOf(completion["usage"]));
  answer.add(fieldsOf(message));
  answer.stopped(choice["finish_reason"]);
  return answer.finish();
}

function usageOf(value: unknown): Usage | undefined {
  const usage = fieldsOf(value);
  const inputTokens = numberOf(usage["prompt_tokens"]);
  const outputTokens = numberOf(usage["completion_tokens"]);
  if (inputTokens === undefined || outputTokens === undefined) return undefined;
  const details = fieldsOf(usage["prompt_tokens_details"]);
  // The second name is used by endpoints that count cache hits and misses.
  const cacheReadTokens = numberOf(details["cached_tokens"]) ?? numberOf(usage["prompt_cache_hit_tokens"]);
  // The second name is used by gateways.
  const cacheWriteTokens = numberOf(details["cache_write_tokens"]) ?? numberOf(details["cache_creation_tokens"]);
  const reasoningTokens = numberOf(fieldsOf(usage["completion_tokens_details"])["reasoning_tokens"]);
  return {
    inputTokens,
    outputTokens,
    totalTokens: numberOf(usage["total_tokens"]) ?? inputTokens + outputTokens,
    ...(cacheReadTokens === undefined ? {} : { cacheReadTokens }),
    ...(cacheWriteTokens === undefined ? {} : { cacheWriteTokens }),
    ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
  };
}
