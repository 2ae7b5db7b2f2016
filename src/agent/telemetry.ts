import type { Attributes, Context, Histogram, MeterProvider, Span } from "@opentelemetry/api";
import { SessionError } from "../session/errors.ts";
import type { ToolCall, ToolMessage } from "../session/message.ts";
import { SandboxError } from "../session/sandbox/sandbox.ts";
import { ModelError } from "./model/model-error.ts";
import type { Model, ModelReply, ModelRequest } from "./model/model.ts";
import { RunParked } from "./run-parked.ts";
import { failureOf } from "./tools/tool-result.ts";

/** The names of OpenTelemetry's conventions for generative AI that spans and metrics of runs use. */
export const GEN_AI = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  conversation: "gen_ai.conversation.id",
  agentName: "gen_ai.agent.name",
  requestModel: "gen_ai.request.model",
  requestTemperature: "gen_ai.request.temperature",
  requestMaxTokens: "gen_ai.request.max_tokens",
  responseModel: "gen_ai.response.model",
  finishReasons: "gen_ai.response.finish_reasons",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheWriteTokens: "gen_ai.usage.cache_creation.input_tokens",
  toolName: "gen_ai.tool.name",
  toolCallId: "gen_ai.tool.call.id",
  toolType: "gen_ai.tool.type",
  toolArguments: "gen_ai.tool.call.arguments",
  toolResult: "gen_ai.tool.call.result",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  tokenType: "gen_ai.token.type",
  errorType: "error.type",
  tokenUsageMetric: "gen_ai.client.token.usage",
  durationMetric: "gen_ai.client.operation.duration",
} as const;

/** Options for the contents of spans. */
export interface TelemetryOptions {
  /** Also put messages, arguments and results into spans (default false: numbers and names only). */
  readonly contents?: boolean;
}

type Api = typeof import("@opentelemetry/api");

interface Histograms {
  readonly duration: Histogram;
  readonly tokens: Histogram;
}

let loaded: Promise<Api | null> | null = null;

/** The API with which metrics are created. */
export type MetricsApi = Api["metrics"];

/** Null if OpenTelemetry is not installed or not configured. */
export async function loadMetrics(): Promise<MetricsApi | null> {
  const api = await loadApi();
  return api === null ? null : api.metrics;
}

async function loadApi(): Promise<Api | null> {
  loaded ??= import("@opentelemetry/api").catch(() => null);
  const api = await loaded;
  return api === null || !isSetUp(api) ? null : api;
}

/** The histograms of each meter provider: a program may configure its own after the first run. */
const histograms = new WeakMap<MeterProvider, Histograms>();

/** The spans and metrics of one run, sent to the program's own OpenTelemetry configuration. */
export class RunTelemetry {
  readonly #api: Api;
  readonly #contents: boolean;
  readonly #sessionId: string;
  #parent: Context;

  private constructor(api: Api, sessionId: string, options: TelemetryOptions) {
    this.#api = api;
    this.#contents = options.contents === true;
    this.#sessionId = sessionId;
    this.#parent = api.context.active();
  }

  /** Null if OpenTelemetry is not installed or not configured: then a run does no work for it. */
  static async load(sessionId: string, options: TelemetryOptions = {}): Promise<RunTelemetry | null> {
    const api = await loadApi();
    return api === null ? null : new RunTelemetry(api, sessionId, options);
  }

  /** The span of a whole run. */
  run<T>(operation: string, agentName: string | undefined, work: () => Promise<T>): Promise<T> {
    const name = agentName === undefined ? operation : `${operation} ${agentName}`;
    const attributes = {
      [GEN_AI.operation]: operation,
      [GEN_AI.conversation]: this.#sessionId,
      ...(agentName === undefined ? {} : { [GEN_AI.agentName]: agentName }),
    };
    return this.#within(name, attributes, async (_span, inner) => {
      this.#parent = inner;
      return work();
    });
  }

  /** The span of one request to a model, with its usage. */
  chat<T extends ModelReply>(model: Model | undefined, request: ModelRequest, work: () => Promise<T>): Promise<T> {
    const { provider = "executor", id = "executor" } = model ?? {};
    const attributes: Attributes = {
      [GEN_AI.operation]: "chat",
      [GEN_AI.provider]: provider,
      [GEN_AI.requestModel]: id,
      [GEN_AI.conversation]: this.#sessionId,
    };
    if (request.temperature !== undefined) attributes[GEN_AI.requestTemperature] = request.temperature;
    if (request.maxOutputTokens !== undefined) attributes[GEN_AI.requestMaxTokens] = request.maxOutputTokens;
    if (this.#contents) attributes[GEN_AI.inputMessages] = JSON.stringify(request.messages);
    return this.#within(`chat ${id}`, attributes, async (span) => {
      const answer = await work();
      span.setAttributes(this.#replyAttributes(answer, id));
      this.#count(answer, {
        [GEN_AI.operation]: "chat",
        [GEN_AI.provider]: provider,
        [GEN_AI.requestModel]: id,
      });
      return answer;
    });
  }

  /** The span of one tool call. */
  tool(call: ToolCall, work: () => Promise<ToolMessage>): Promise<ToolMessage> {
    const attributes: Attributes = {
      [GEN_AI.operation]: "execute_tool",
      [GEN_AI.toolName]: call.name,
      [GEN_AI.toolCallId]: call.id,
      [GEN_AI.toolType]: "function",
      ...(this.#contents ? { [GEN_AI.toolArguments]: call.arguments } : {}),
    };
    return this.#within(`execute_tool ${call.name}`, attributes, async (span) => {
      const message = await work();
      if (message.isError === true) {
        span.setAttribute(GEN_AI.errorType, failureOf(message) ?? "tool_error");
        span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
      }
      if (this.#contents) span.setAttribute(GEN_AI.toolResult, JSON.stringify(message.content));
      return message;
    });
  }

  async #within<T>(name: string, attributes: Attributes, work: (span: Span, inner: Context) => Promise<T>): Promise<T> {
    const { trace, context, SpanStatusCode } = this.#api;
    const startedMs = performance.now();
    const span = trace.getTracer("skein").startSpan(name, { attributes }, this.#parent);
    const inner = trace.setSpan(this.#parent, span);
    try {
      return await context.with(inner, () => work(span, inner));
    } catch (error) {
      if (!(error instanceof RunParked)) {
        span.setAttribute(GEN_AI.errorType, errorTypeOf(error));
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
      throw error;
    } finally {
      span.end();
      const operation = attributes[GEN_AI.operation];
      const elapsedSeconds = (performance.now() - startedMs) / 1000;
      const named = operation === undefined ? {} : { [GEN_AI.operation]: operation };
      this.#histograms().duration.record(elapsedSeconds, named);
    }
  }

  #replyAttributes(reply: ModelReply, model: string): Attributes {
    const { usage } = reply;
    return {
      [GEN_AI.responseModel]: reply.model ?? model,
      ...(reply.stopReason === undefined ? {} : { [GEN_AI.finishReasons]: [reply.stopReason] }),
      ...(usage === undefined
        ? {}
        : { [GEN_AI.inputTokens]: usage.inputTokens, [GEN_AI.outputTokens]: usage.outputTokens }),
      ...(usage?.cacheReadTokens === undefined ? {} : { [GEN_AI.cacheReadTokens]: usage.cacheReadTokens }),
      ...(usage?.cacheWriteTokens === undefined ? {} : { [GEN_AI.cacheWriteTokens]: usage.cacheWriteTokens }),
      ...(this.#contents ? { [GEN_AI.outputMessages]: JSON.stringify([reply]) } : {}),
    };
  }

  #count(reply: ModelReply, attributes: Attributes): void {
    if (reply.usage === undefined) return;
    const { tokens } = this.#histograms();
    tokens.record(reply.usage.inputTokens, { ...attributes, [GEN_AI.tokenType]: "input" });
    tokens.record(reply.usage.outputTokens, { ...attributes, [GEN_AI.tokenType]: "output" });
  }

  #histograms(): Histograms {
    const provider = this.#api.metrics.getMeterProvider();
    const known = histograms.get(provider);
    if (known !== undefined) return known;
    const meter = provider.getMeter("skein");
    const made = {
      duration: meter.createHistogram(GEN_AI.durationMetric, { unit: "s" }),
      tokens: meter.createHistogram(GEN_AI.tokenUsageMetric, { unit: "{token}" }),
    };
    histograms.set(provider, made);
    return made;
  }
}

/** Whether spans or metrics are exported anywhere. */
function isSetUp({ trace, metrics, createNoopMeter, ProxyTracerProvider }: Api): boolean {
  const tracers = trace.getTracerProvider();
  const traced = !(tracers instanceof ProxyTracerProvider) || tracers.getDelegateTracer("skein") !== undefined;
  return traced || metrics.getMeter("skein") !== createNoopMeter();
}

/** The name of an error in a span: its kind, code or class, never its message. */
function errorTypeOf(error: unknown): string {
  if (error instanceof ModelError || error instanceof SandboxError) return error.kind;
  if (error instanceof SessionError) return error.code;
  return error instanceof Error ? error.name : "unknown";
}
