import { checkArgument, type Habits, type KeysOf } from "../../session/check-arguments.ts";
import type { Model, ModelDelta, ModelReply, ModelRequest } from "../../agent/model/model.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { AssistantMessage, ContentPart, StopReason, ToolCall } from "../../session/message.ts";
import type { Usage } from "../../session/usage.ts";
import { contextWindowOf } from "../context-windows.ts";
import { loadPricesOfEnvironment } from "../price-list.ts";
import { checkPrice, costOf, type ModelPrice, priceOf } from "../prices.ts";
import { startCall } from "./call.ts";
import { replyContent } from "./content.ts";
import { malformed, modelFailure } from "./failure.ts";

const TIMEOUT_MS = 600_000;

/** The options of one request: no retries by the client, and an abort signal. */
export interface ClientCall {
  readonly signal: AbortSignal;
  readonly maxRetries: 0;
  readonly timeout: number;
}

/** An answer of an API, before its cost is computed. */
export interface WireAnswer {
  readonly parts: readonly ContentPart[];
  readonly toolCalls: readonly ToolCall[];
  readonly stopReason: StopReason;
  /** The model id in the answer. */
  readonly model: string;
  readonly usage: Usage | undefined;
  /** How many of the tokens written to the cache were written for an hour. */
  readonly longWriteTokens?: number;
  readonly providerData?: JsonValue;
}

/** Reads the events of one stream. */
export interface WireStream {
  /** Returns the deltas of an event. @throws the error that the provider sent. */
  read(event: unknown): readonly ModelDelta[];
  /** The whole answer. @throws {ModelError} if the stream ended early. */
  finish(): WireAnswer;
}

/** The protocol of one provider's API. */
export interface Wire<Client> {
  readonly provider: string;
  /** The request's body. It shares parts with the request and must not be mutated. */
  body(request: ModelRequest, client: Client): Readonly<Record<string, unknown>>;
  /** Whether the provider accepts that schema for structured output. */
  takesOutput(schema: JsonObject): boolean;
  /** The additional body fields of a streaming request. */
  readonly streaming: Readonly<Record<string, unknown>>;
  send(client: Client, body: object, call: ClientCall): PromiseLike<unknown>;
  readAnswer(answer: unknown): WireAnswer;
  startStream(): WireStream;
}

/** Options that all models over HTTP share. */
export interface WireModelOptions {
  /** Maximum tokens of a request (default: the known context window of the model). */
  readonly contextWindow?: number;
  /** The price of a million tokens (default: the price in the table). */
  readonly prices?: ModelPrice;
  /**
   * Whether the endpoint accepts a JSON Schema for its answer (default: judged by the model's id). If it does not, a run uses
   * a tool to get its `output`.
   */
  readonly takesOutput?: boolean;
  /** How long the provider may send nothing, before and within an answer (default: the given client's timeout, else ten minutes). */
  readonly timeoutMs?: number;
}

/** The names of these options. */
export const WIRE_OPTIONS: KeysOf<WireModelOptions> = {
  contextWindow: true,
  prices: true,
  takesOutput: true,
  timeoutMs: true,
};

/** Option names of other SDKs, with what to write instead. */
export const HABITS: Habits = {
  model: "the model's id is the first argument",
  maxTokens: "give maxOutputTokens to the run",
  maxRetries: "the loop retries; give retry to the run",
  baseUrl: "it is called baseURL",
  base_url: "it is called baseURL",
  api_key: "it is called apiKey",
};

/** @throws {SessionError} `INVALID_OPTION` if the value is not a non-empty string. */
export function checkModelId(id: unknown, call: string): void {
  checkArgument(typeof id === "string" && id !== "", id, call, 'the id of a model, such as "gpt-5-mini"');
}

/** A model over HTTP. The client is created at the first request and is not reachable from the model, so keys do not leak. */
export function wireModel<Client>(init: {
  readonly wire: Wire<Client>;
  readonly id: string;
  readonly options: WireModelOptions;
  readonly secret: string | undefined;
  readonly client: () => Promise<Client>;
  /** The timeout of the caller's own client; used if the options have no timeout. */
  readonly clientTimeoutMs: number | undefined;
}): Model {
  const { wire, id, options, secret, client } = init;
  const { provider } = wire;
  checkWireModelOptions(provider, id, options);
  loadPricesOfEnvironment();
  const {
    contextWindow = contextWindowOf(provider, id),
    prices,
    timeoutMs = init.clientTimeoutMs ?? TIMEOUT_MS,
  } = options;
  const start = (signal: AbortSignal | undefined) => {
    const call = startCall({ provider, signal, timeoutMs });
    const clientCall: ClientCall = { signal: call.signal, maxRetries: 0, timeout: timeoutMs };
    return { call, clientCall };
  };
  return {
    provider,
    id,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    get reportsCost() {
      return (prices ?? priceOf(provider, id)) !== undefined;
    },
    costOf: (usage) => costOf(usage, prices ?? priceOf(provider, id)),
    takesOutput: (schema) => options.takesOutput ?? wire.takesOutput(schema),
    async prepare() {
      await client();
    },
    async complete(request, { signal } = {}) {
      const { call, clientCall } = start(signal);
      try {
        const ready = await call.wait(client());
        const body = merge(wire.body(request, ready), request.providerOptions);
        return replyOf(wire.readAnswer(await call.wait(wire.send(ready, body, clientCall))), provider, id, prices);
      } catch (error) {
        throw signal?.aborted ? signal.reason : modelFailure(error, provider, secret);
      } finally {
        call.end();
      }
    },
    async *stream(request, { signal } = {}) {
      const { call, clientCall } = start(signal);
      try {
        const ready = await call.wait(client());
        const body = {
          ...merge({ ...wire.body(request, ready), ...wire.streaming }, request.providerOptions),
          stream: true,
        };
        const events = eventsOf(await call.wait(wire.send(ready, body, clientCall)), provider);
        const reader = wire.startStream();
        for (;;) {
          const { done, value } = await call.wait(events.next());
          if (done) break;
          for (const delta of reader.read(value)) {
            signal?.throwIfAborted();
            yield delta;
          }
        }
        const reply = replyOf(reader.finish(), provider, id, prices);
        yield finishOf(reply);
      } catch (error) {
        throw signal?.aborted ? signal.reason : modelFailure(error, provider, secret);
      } finally {
        call.end();
      }
    },
  };
}

/** Caches the result of the first call. A failure is not cached: a missing package may be installed by the next call. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    if (made === undefined) {
      const making = make();
      made = making;
      making.catch(() => {
        made = undefined;
      });
    }
    return made;
  };
}

/** Whether a message is from this provider and holds provider data, which may be sent back to it. */
export function isFrom(message: AssistantMessage, provider: string): boolean {
  return message.provider === provider && message.providerData !== undefined;
}

function checkWireModelOptions(provider: string, id: string, options: WireModelOptions): void {
  if (typeof id !== "string" || id.trim() === "")
    throw new SessionError("INVALID_OPTION", `A model of ${provider} needs its id, for example ${provider}("…").`);
  for (const name of ["contextWindow", "timeoutMs"] as const) {
    const value: unknown = options[name];
    if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) > 0))
      throw new SessionError(
        "INVALID_OPTION",
        `The option ${name} of model ${show(id)} must be a whole number above 0.`,
      );
  }
  if (options.prices !== undefined) checkPrice(options.prices, `${provider}/${id}`);
}

function merge(body: Readonly<Record<string, unknown>>, options: JsonValue | undefined): Record<string, unknown> {
  if (options === undefined || options === null) return { ...body };
  if (typeof options !== "object" || Array.isArray(options))
    throw new SessionError("INVALID_OPTION", "The request's providerOptions must be an object of body fields.");
  return { ...body, ...options };
}

function eventsOf(stream: unknown, provider: string): AsyncIterator<unknown> {
  if (typeof stream !== "object" || stream === null || !(Symbol.asyncIterator in stream))
    throw malformed(provider, "it is no stream of events");
  return (stream as AsyncIterable<unknown>)[Symbol.asyncIterator]();
}

function replyOf(answer: WireAnswer, provider: string, id: string, prices: ModelPrice | undefined): ModelReply {
  const { parts, toolCalls, usage, longWriteTokens, stopReason, providerData } = answer;
  const model = answer.model || id;
  const price = prices ?? priceOf(provider, model) ?? priceOf(provider, id);
  const cost = usage === undefined ? undefined : costOf(usage, price, longWriteTokens);
  return {
    role: "assistant",
    content: replyContent(parts, toolCalls),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    provider,
    model,
    ...(usage === undefined ? {} : { usage }),
    ...(cost === undefined ? {} : { cost }),
    stopReason,
    ...(providerData === undefined ? {} : { providerData }),
  };
}

function finishOf(reply: ModelReply): ModelDelta {
  const { stopReason = "stop", usage } = reply;
  return { type: "finish", stopReason, ...(usage === undefined ? {} : { usage }), reply };
}
