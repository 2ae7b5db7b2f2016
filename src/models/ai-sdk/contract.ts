import type {
  LanguageModelV2StreamPart,
  LanguageModelV2ToolResultOutput,
  LanguageModelV2Usage,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3Message,
  LanguageModelV3StreamPart,
  LanguageModelV3ToolResultOutput,
  LanguageModelV3Usage,
} from "@ai-sdk/provider";

/** The versions of the AI SDK's model contract that are spoken here. */
export type ContractVersion = "v2" | "v3";

/** What a model is asked. Version 2 is asked the same, except for the content of tool results. */
export type CallOptions = LanguageModelV3CallOptions;
/** One message of a prompt. */
export type PromptMessage = LanguageModelV3Message;
/** One part of an assistant's message in a prompt. */
export type AssistantPart = Extract<PromptMessage, { role: "assistant" }>["content"][number];
/** One part of a user's message in a prompt. */
export type UserPart = Extract<PromptMessage, { role: "user" }>["content"][number];
/** What came of a tool call, in a prompt. */
export type ToolOutput = LanguageModelV3ToolResultOutput;
/** The same in version 2. */
export type ToolOutputV2 = LanguageModelV2ToolResultOutput;

/** One block of an answer. */
export type Block = LanguageModelV3Content;
/** What an answer spent, in both versions. */
export type SpentTokens = LanguageModelV3Usage | LanguageModelV2Usage;
/** Why an answer ended, in both versions. */
export type FinishReason = LanguageModelV3FinishReason | string;
/** A whole answer, as far as it is read here. */
export interface Generated {
  readonly content: readonly Block[];
  readonly finishReason: FinishReason;
  readonly usage: SpentTokens;
  readonly response?: { readonly modelId?: string };
}
/** One piece of a stream, in both versions. */
export type StreamPart = LanguageModelV3StreamPart | LanguageModelV2StreamPart;

/** A model of either version, with what both have. */
export interface LanguageModel {
  readonly specificationVersion: ContractVersion;
  readonly provider: string;
  readonly modelId: string;
  /** False of a provider that was not told that its endpoint takes schemas. */
  readonly supportsStructuredOutputs?: boolean;
  doGenerate(options: CallOptions): PromiseLike<Generated>;
  doStream(options: CallOptions): PromiseLike<{ readonly stream: ReadableStream<StreamPart> }>;
}
