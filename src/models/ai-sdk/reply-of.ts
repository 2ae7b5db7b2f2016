import type { ModelReply } from "../../agent/model/model.ts";
import { ModelError } from "../../agent/model/model-error.ts";
import type { ContentPart, StopReason, ToolCall } from "../../session/message.ts";
import type { Usage } from "../../session/usage.ts";
import { costOf, type ModelPrice, priceOf } from "../prices.ts";
import { anthropicUsage, longWritesOf } from "../anthropic/messages-wire.ts";
import { replyContent } from "../wire/content.ts";
import { fieldsOf } from "../wire/json-reader.ts";
import type { Block, FinishReason, Generated, TokenCounts } from "./contract.ts";
import { lookUp, type NamedModel } from "./look-up.ts";
import { base64Of, providerDataOf } from "./provider-data.ts";

/** Converts a whole answer to a message. @throws {ModelError} if the provider ended it with an error. */
export function replyOf(generated: Generated, model: NamedModel, prices: ModelPrice | undefined): ModelReply {
  const { content: blocks, response } = generated;
  const toolCalls = blocks.flatMap(callOf);
  const raw = fieldsOf(fieldsOf(generated.providerMetadata?.["anthropic"])["usage"]);
  // The AI SDK counts only some of what Anthropic counts; its second version leaves out what was written to the cache.
  const usage = anthropicUsage(raw) ?? usageOf(generated.usage);
  const name = response?.modelId || model.modelId;
  const cost =
    usage === undefined
      ? undefined
      : costOf(usage, prices ?? listPrice(model, name), longWritesOf(raw).longWriteTokens);
  const providerData = providerDataOf(blocks);
  return {
    role: "assistant",
    content: replyContent(blocks.flatMap(partOf), toolCalls),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    provider: model.provider,
    model: name,
    ...(usage === undefined ? {} : { usage }),
    ...(cost === undefined ? {} : { cost }),
    stopReason: stopReasonOf(generated.finishReason, toolCalls.length > 0, model.provider),
    ...(providerData === undefined ? {} : { providerData }),
  };
}

/** Whether the finish reason is only a placeholder, not one of the provider: then the stream was cut off. */
export function endsWithoutReason(reason: FinishReason): boolean {
  return typeof reason === "string" ? reason === "unknown" : reason.unified === "other" && reason.raw === undefined;
}

function stopReasonOf(reason: FinishReason, calls: boolean, provider: string): StopReason {
  const unified = typeof reason === "string" ? reason : reason.unified;
  if (unified === "error") throw new ModelError("other", `${provider} ended its answer with an error.`, { provider });
  if (unified === "length") return "length";
  if (unified === "content-filter") return "content_filter";
  // Some endpoints finish with "stop" although the answer has calls.
  return calls ? "tool_calls" : "stop";
}

function partOf(block: Block): ContentPart[] {
  if (block.type === "text") return [{ type: "text", text: block.text }];
  if (block.type === "reasoning") return [{ type: "thinking", text: block.text }];
  if (block.type !== "file") return [];
  const type = block.mediaType.startsWith("image/") ? "image" : "file";
  return [{ type, mediaType: block.mediaType, data: base64Of(block.data) }];
}

function callOf(block: Block): ToolCall[] {
  if (block.type !== "tool-call" || block.providerExecuted === true) return [];
  return [{ id: block.toolCallId, name: block.toolName, arguments: block.input }];
}

/** Version 3 groups the token counts, version 2 lists them flat; both omit counts that the provider does not report. */
function usageOf(spent: TokenCounts | undefined): Usage | undefined {
  const flat =
    typeof spent?.inputTokens === "object" ? undefined : (spent as Extract<TokenCounts, { totalTokens: unknown }>);
  const grouped = flat === undefined ? (spent as Exclude<TokenCounts, { totalTokens: unknown }>) : undefined;
  const { cacheRead, cacheWrite, noCache, total } = grouped?.inputTokens ?? {};
  const parts = [noCache, cacheRead, cacheWrite].filter((count) => count !== undefined);
  const input =
    flat?.inputTokens ?? total ?? (parts.length === 0 ? undefined : parts.reduce((sum, count) => sum + count, 0));
  const output = flat?.outputTokens ?? grouped?.outputTokens?.total;
  if (input === undefined && output === undefined) return undefined;
  const inputTokens = input ?? 0;
  const outputTokens = output ?? 0;
  const cacheReadTokens = flat?.cachedInputTokens ?? cacheRead;
  const reasoningTokens = flat?.reasoningTokens ?? grouped?.outputTokens?.reasoning;
  return {
    inputTokens,
    outputTokens,
    totalTokens: Math.max(flat?.totalTokens ?? 0, inputTokens + outputTokens),
    ...(cacheReadTokens === undefined ? {} : { cacheReadTokens }),
    ...(cacheWrite === undefined ? {} : { cacheWriteTokens: cacheWrite }),
    ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
  };
}

/** The price of the model id in the answer, else that of the requested id. */
function listPrice(model: NamedModel, name: string): ModelPrice | undefined {
  return lookUp(priceOf, model.provider, name) ?? lookUp(priceOf, model.provider, model.modelId);
}
