import { defined } from "../../internal/defined.ts";
import type { AssistantMessage } from "../../session/message.ts";
import { collectReply, type PartialReply } from "./collect-reply.ts";
import type { RequestParameters, RunOptions } from "../loop-options.ts";
import type { Model, ModelDelta, ModelReply, ModelRequest } from "./model.ts";
import { readReply } from "./read-reply.ts";
import { withRetries } from "./retry.ts";
import { runErrorOf } from "../run-error.ts";
import type { RunLog } from "../persist/run-log.ts";
import type { RunTelemetry } from "../telemetry.ts";
import { untilAborted } from "../follow-abort.ts";

/** What asking a model needs of its run. */
export interface Asking {
  readonly options: RunOptions;
  readonly log: RunLog;
  readonly telemetry: RunTelemetry | null;
  readonly round: number;
  /** Told of the answer as it comes, and of null when what came of it is void. */
  readonly onPartial?: (partial: PartialReply | null) => void;
}

/** Asks the model of a run, by its stream where it has one, and again after a failure that passes. */
export function askModel(request: ModelRequest, asking: Asking): Promise<AssistantMessage> {
  const { options, log, telemetry, round, onPartial = () => {} } = asking;
  const { model, executor, agentName, retry = {} } = options;
  const { signal, events } = log;
  const askOnce = (): Promise<ModelReply> => {
    onPartial(null);
    const whole = executor ?? (model?.stream === undefined ? (model as Model) : null);
    if (whole !== null) return promiseOf(() => whole.complete(request, { signal }));
    const tell = (delta: ModelDelta): void => {
      if (delta.type !== "finish") events.add({ ...delta, round });
    };
    return collectReply(model as Model, request, signal, tell, onPartial);
  };
  const ask = (): Promise<AssistantMessage> =>
    untilAborted(askOnce(), signal).then((reply) => readReply(reply, model, agentName));
  const attempt = telemetry === null ? ask : () => telemetry.chat(model, request, ask);
  return withRetries(attempt, retry, signal, (again) => {
    onPartial(null);
    events.add({ type: "model-retry", round, ...again, error: runErrorOf(again.error) });
  });
}

/** What of a run's options goes with every request. */
export function parametersOf(options: RunOptions): Omit<RequestParameters, "toolChoice"> {
  const { thinkingLevel, temperature, maxOutputTokens, stop, providerOptions } = options;
  return defined({ thinkingLevel, temperature, maxOutputTokens, stop, providerOptions });
}

/** What a function of someone else's comes to, whether it is an async one or not. */
function promiseOf<T>(work: () => T | PromiseLike<T>): Promise<T> {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(error);
  }
}
