import { defined } from "../../internal/defined.ts";
import type { AssistantMessage, Message } from "../../session/message.ts";
import { placesOf, refersToBlobs, withAttachments } from "../../stores/blobs/message-blobs.ts";
import { untilAborted } from "../follow-abort.ts";
import type { RequestParameters, RunOptions } from "../loop-options.ts";
import type { RunLog } from "../persist/run-log.ts";
import { runErrorOf } from "../run-error.ts";
import type { RunTelemetry } from "../telemetry.ts";
import { collectReply, type PartialReply } from "./collect-reply.ts";
import type { Model, ModelDelta, ModelReply, ModelRequest } from "./model.ts";
import { nameAttachments } from "./name-attachments.ts";
import { readReply } from "./read-reply.ts";
import { withRetries } from "./retry.ts";

/** The parts of a run that `askModel` uses. */
export interface AskModelParts {
  readonly options: RunOptions;
  readonly log: RunLog;
  readonly telemetry: RunTelemetry | null;
  readonly round: number;
  /** The messages before transforms, which show where the blobs of the request are. */
  readonly said?: readonly Message[];
  /** False if no message refers to blobs, so that the messages need not be looked through. */
  readonly hasBlobs?: boolean;
  /** Called with the partial answer; with null when it is discarded. */
  readonly onPartial?: (partial: PartialReply | null) => void;
}

/** Asks the model of a run, by streaming if it supports it, and retries transient failures. */
export function askModel(request: ModelRequest, asking: AskModelParts): Promise<AssistantMessage> {
  return withData(request, asking).then((ready) => requestAnswer(ready, asking));
}

/** The one place where the bytes of images and files are read: just before a model gets them. */
async function withData(request: ModelRequest, { log, said, hasBlobs }: AskModelParts): Promise<ModelRequest> {
  // A request puts its messages together when they are read: each round would cost the length of the context.
  if (hasBlobs === false) return request;
  const { messages } = request;
  if (!messages.some(refersToBlobs)) return request;
  const known = [...(log.blobPlace === null ? [] : [log.blobPlace]), ...placesOf(said ?? messages)];
  return { ...request, messages: await withAttachments(messages, known) };
}

function requestAnswer(request: ModelRequest, asking: AskModelParts): Promise<AssistantMessage> {
  const { options, log, telemetry, round, onPartial = () => {} } = asking;
  const { model, executor, agentName, retry = {} } = options;
  const { signal, events } = log;
  const askOnce = (): Promise<ModelReply> => {
    onPartial(null);
    const whole = executor ?? (model?.stream === undefined ? (model as Model) : null);
    if (whole !== null) return promiseOf(() => whole.complete(request, { signal }));
    const emit = (delta: ModelDelta): void => {
      if (delta.type !== "finish") events.add({ ...delta, round });
    };
    return collectReply(model as Model, request, signal, emit, onPartial);
  };
  const ask = (): Promise<AssistantMessage> =>
    untilAborted(askOnce(), signal).then(
      (reply) => readReply(reply, model, agentName),
      (error: unknown) => {
        throw nameAttachments(error, request.messages);
      },
    );
  const attempt = telemetry === null ? ask : () => telemetry.chat(model, request, ask);
  return withRetries(attempt, retry, signal, (again) => {
    onPartial(null);
    events.add({ type: "model-retry", round, ...again, error: runErrorOf(again.error) });
  });
}

/** The run options that are part of every request. */
export function parametersOf(options: RunOptions): Omit<RequestParameters, "toolChoice"> {
  const { thinkingLevel, temperature, maxOutputTokens, stop, providerOptions } = options;
  return defined({ thinkingLevel, temperature, maxOutputTokens, stop, providerOptions });
}

/** Calls a caller's function and returns its result as a promise, whether or not it is async. */
function promiseOf<T>(work: () => T | PromiseLike<T>): Promise<T> {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(error);
  }
}
