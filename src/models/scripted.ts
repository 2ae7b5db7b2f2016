import { checkArgument, checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import type { Model, ModelDelta, ModelReply, ModelRequest } from "../agent/model/model.ts";
import { PartialReply } from "../agent/model/collect-reply.ts";
import { ModelError } from "../agent/model/model-error.ts";
import { untilAborted } from "../agent/follow-abort.ts";
import { deltasOfReply } from "./deltas-of-reply.ts";

type Given = string | ModelReply;

/**
 * An answer of a script: a text, a whole reply, an error to throw, or a function of the request that returns a text, a reply
 * or, as an async generator, the deltas of a stream.
 */
export type ScriptedReply =
  | Given
  | Error
  | ((
      request: ModelRequest,
      options: { readonly signal?: AbortSignal },
    ) => Given | Promise<Given> | AsyncIterable<ModelDelta>);

/** A model that returns scripted replies in order and records the requests. */
export interface ScriptedModel extends Model {
  readonly requests: readonly ModelRequest[];
}

/** Options of `scripted`. */
export interface ScriptedOptions {
  readonly contextWindow?: number;
  /** False for a model that cannot stream. */
  readonly stream?: boolean;
}

/** A model that replays replies, for tests and examples. It throws if it gets more requests than it has replies. */
export function scripted(replies: readonly ScriptedReply[], options: ScriptedOptions = {}): ScriptedModel {
  checkArgument(Array.isArray(replies), replies, "scripted", "a list of replies");
  checkOptionsOf(options, { contextWindow: true, stream: true } satisfies KeysOf<ScriptedOptions>, "scripted");
  const { stream: streams = true, ...window } = options;
  const requests: ModelRequest[] = [];
  const start: Start = (request, callOptions) => {
    callOptions.signal?.throwIfAborted();
    const reply = replies[requests.length];
    requests.push(request);
    if (reply === undefined)
      throw new Error(`The scripted model has ${replies.length} replies and was asked ${requests.length} times.`);
    if (reply instanceof Error) throw reply;
    return typeof reply === "function" ? reply(request, callOptions) : reply;
  };
  const model: ScriptedModel = {
    provider: "scripted",
    id: "scripted",
    ...window,
    takesOutput: () => true,
    requests,
    async complete(request, { signal } = {}) {
      const given = start(request, signal === undefined ? {} : { signal });
      return isStream(given) ? collect(model, pieces(given, signal)) : wholeReply(await unlessAborted(given, signal));
    },
  };
  return streams ? { ...model, stream: (request, call) => streamed(start, request, call?.signal) } : model;
}

type Start = (
  request: ModelRequest,
  options: { readonly signal?: AbortSignal },
) => Given | Promise<Given> | AsyncIterable<ModelDelta>;

async function* streamed(
  start: Start,
  request: ModelRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<ModelDelta> {
  const given = start(request, signal === undefined ? {} : { signal });
  if (isStream(given)) return yield* pieces(given, signal);
  for (const delta of deltasOfReply(wholeReply(await unlessAborted(given, signal)))) {
    signal?.throwIfAborted();
    yield delta;
  }
}

/** The deltas of a stream until its end or an abort. An abort does not wait for the pending delta. */
async function* pieces(stream: AsyncIterable<ModelDelta>, signal: AbortSignal | undefined): AsyncGenerator<ModelDelta> {
  const iterator = stream[Symbol.asyncIterator]();
  let ended = false;
  try {
    while (true) {
      signal?.throwIfAborted();
      const next = await unlessAborted(iterator.next(), signal);
      if (next.done) {
        ended = true;
        return;
      }
      yield next.value;
    }
  } finally {
    if (!ended) iterator.return?.().catch(() => {});
  }
}

async function collect(model: Model, deltas: AsyncIterable<ModelDelta>): Promise<ModelReply> {
  const partial = new PartialReply(model);
  for await (const delta of deltas) {
    if (delta.type === "finish") return delta.reply ?? partial.finish(delta.stopReason, delta.usage);
    partial.add(delta);
  }
  throw new ModelError("connection", "The scripted stream ended without a finish.", { provider: model.provider });
}

function wholeReply(given: Given): ModelReply {
  if (typeof given !== "string") return given;
  return { role: "assistant", content: given, provider: "scripted", model: "scripted", stopReason: "stop" };
}

function isStream(given: ReturnType<Start>): given is AsyncIterable<ModelDelta> {
  return typeof given === "object" && Symbol.asyncIterator in given;
}

async function unlessAborted<T>(value: T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return signal !== undefined && value instanceof Promise ? untilAborted(value, signal) : value;
}
