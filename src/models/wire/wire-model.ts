import { checkArgument, type Habits, type KeysOf } from "../../session/check-arguments.ts";
import type { Model, ModelDelta, ModelReply, ModelRequest } from "../../agent/model/model.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { AssistantMessage, ContentPart, StopReason, ToolCall } from "../../session/message.ts";
import type { Usage } from "../../session/usage.ts";
import { contextWindowOf } from "../context-windows.ts";
import { checkPrice, costOf, type ModelPrice, priceOf } from "../prices.ts";
import { startCall } from "./call.ts";
import { replyContent } from "./content.ts";
import { malformed, modelFailure } from "./failure.ts";

const TIMEOUT_MS = 600_000;

/** How a client is asked for one request: never to try twice, and to stop with the call. */
export interface ClientCall {
  readonly signal: AbortSignal;
  readonly maxRetries: 0;
  readonly timeout: number;
}

/** An answer as a wire gives it, before it is priced. */
export interface WireAnswer {
  readonly parts: readonly ContentPart[];
  readonly toolCalls: readonly ToolCall[];
  readonly stopReason: StopReason;
  /** The id that the provider answered with. */
  readonly model: string;
  readonly usage: Usage | undefined;
  readonly providerData?: JsonValue;
}

/** Reads the events of one stream. */
export interface WireStream {
  /** What an event adds to the answer. @throws what the provider says went wrong. */
  read(event: unknown): readonly ModelDelta[];
  /** The whole answer. @throws {ModelError} when the stream was over before it. */
  finish(): WireAnswer;
}

/** One provider's way to ask and to answer. */
export interface Wire<Client> {
  readonly provider: string;
  /** The request's body. It shares parts with the request and changes none of them. */
  body(request: ModelRequest, client: Client): Readonly<Record<string, unknown>>;
  /** Whether the provider can be asked for a value of that schema. */
  takesOutput(schema: JsonObject): boolean;
  /** What a body has besides, to be answered piece by piece. */
  readonly streaming: Readonly<Record<string, unknown>>;
  send(client: Client, body: object, call: ClientCall): PromiseLike<unknown>;
  readAnswer(answer: unknown): WireAnswer;
  startStream(): WireStream;
}

/** What the models of all wires are set up with. */
export interface WireModelOptions {
  /** How many tokens a request may have, in place of what is known of the model. */
  readonly contextWindow?: number;
  /** What a million tokens cost, in place of the table's price. */
  readonly prices?: ModelPrice;
  /**
   * Whether the endpoint takes a JSON Schema that its answer is to fit (judged by the model's id if not given); of one that
   * does not, a run asks for its `output` by a tool.
   */
  readonly takesOutput?: boolean;
  /** How long the provider may say nothing, before and within an answer. Ten minutes, or what a given client has. */
  readonly timeoutMs?: number;
}

/** The options that the models of all wires take. */
export const WIRE_OPTIONS: KeysOf<WireModelOptions> = {
  contextWindow: true,
  prices: true,
  takesOutput: true,
  timeoutMs: true,
};

/** Options of other SDKs, with what to write here. */
export const HABITS: Habits = {
  model: "the model's id is the first argument",
  maxTokens: "give maxOutputTokens to the run",
  maxRetries: "the loop retries; give retry to the run",
  baseUrl: "it is called baseURL",
  base_url: "it is called baseURL",
  api_key: "it is called apiKey",
};

/** @throws {SessionError} `INVALID_OPTION` unless the value may be a model's id. */
export function checkModelId(id: unknown, call: string): void {
  checkArgument(typeof id === "string" && id !== "", id, call, 'the id of a model, such as "gpt-5-mini"');
}

/** A model on a wire. The client is made at the first request, and nothing of it can be seen from outside. */
export function wireModel<Client>(init: {
  readonly wire: Wire<Client>;
  readonly id: string;
  readonly options: WireModelOptions;
  readonly secret: string | undefined;
  readonly client: () => Promise<Client>;
  /** How long a client that the caller made waits, which counts unless a timeout is given. */
  readonly clientTimeoutMs: number | undefined;
}): Model {
  const { wire, id, options, secret, client } = init;
  const { provider } = wire;
  checkOptions(provider, id, options);
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

/** Remembers what was made first; a failure is not remembered, for what was missing may be there the next time. */
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

/** Whether a message was written by this provider, so that its own data may go back to it. */
export function isFrom(message: AssistantMessage, provider: string): boolean {
  return message.provider === provider && message.providerData !== undefined;
}

function checkOptions(provider: string, id: string, options: WireModelOptions): void {
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
  const { parts, toolCalls, usage, stopReason, providerData } = answer;
  const model = answer.model || id;
  const price = prices ?? priceOf(provider, model) ?? priceOf(provider, id);
  const cost = usage === undefined ? undefined : costOf(usage, price);
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
