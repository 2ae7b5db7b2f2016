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

/** The supported versions of the AI SDK's model contract. */
export type ContractVersion = "v2" | "v3";

/** The options of a call. Version 2 differs only in the content of tool results. */
export type CallOptions = LanguageModelV3CallOptions;
/** One message of a prompt. */
export type PromptMessage = LanguageModelV3Message;
/** One part of an assistant's message in a prompt. */
export type AssistantPart = Extract<PromptMessage, { role: "assistant" }>["content"][number];
/** One part of a user's message in a prompt. */
export type UserPart = Extract<PromptMessage, { role: "user" }>["content"][number];
/** The output of a tool call in a prompt. */
export type ToolOutput = LanguageModelV3ToolResultOutput;
/** The output of a tool call in a prompt of version 2. */
export type ToolOutputV2 = LanguageModelV2ToolResultOutput;

/** One block of an answer. */
export type Block = LanguageModelV3Content;
/** The token counts of an answer, in both versions. */
export type TokenCounts = LanguageModelV3Usage | LanguageModelV2Usage;
/** The finish reason of an answer, in both versions. */
export type FinishReason = LanguageModelV3FinishReason | string;
/** The fields of a whole answer that are used here. */
export interface Generated {
  readonly content: readonly Block[];
  readonly finishReason: FinishReason;
  readonly usage: TokenCounts;
  readonly response?: { readonly modelId?: string };
  /** Further information of the provider, by provider. */
  readonly providerMetadata?: Readonly<Record<string, unknown>>;
}
/** One part of a stream, in both versions. */
export type StreamPart = LanguageModelV3StreamPart | LanguageModelV2StreamPart;

/** The members that models of both versions have. */
export interface LanguageModel {
  readonly specificationVersion: ContractVersion;
  readonly provider: string;
  readonly modelId: string;
  /** False if the provider was not configured for an endpoint that accepts JSON Schemas. */
  readonly supportsStructuredOutputs?: boolean;
  doGenerate(options: CallOptions): PromiseLike<Generated>;
  doStream(options: CallOptions): PromiseLike<{ readonly stream: ReadableStream<StreamPart> }>;
}
