import { withoutStop } from "../../internal/trim-text.ts";
import { ModelError, type ModelFailure } from "../../agent/model/model-error.ts";
import { SessionError } from "../../session/errors.ts";
import { cutShort, modelFailure } from "../wire/failure.ts";
import { fieldsOf, numberOf, parseObject, stringOf } from "../wire/json-reader.ts";

const KIND_OF_NAME: Readonly<Record<string, ModelFailure>> = {
  AI_UnsupportedFunctionalityError: "invalid_request",
  AI_InvalidPromptError: "invalid_request",
  AI_InvalidArgumentError: "invalid_request",
  AI_NoSuchModelError: "invalid_request",
  AI_LoadAPIKeyError: "authentication",
  AI_LoadSettingError: "authentication",
  AI_JSONParseError: "malformed",
  AI_TypeValidationError: "malformed",
  AI_InvalidResponseDataError: "malformed",
  AI_EmptyResponseBodyError: "malformed",
  AI_NoContentGeneratedError: "malformed",
};

/** Converts an error of an AI SDK provider to a `ModelError`. Our own errors are returned unchanged. */
export function aiSdkFailure(thrown: unknown, provider: string): Error {
  if (thrown instanceof SessionError) return thrown;
  const found = fieldsOf(thrown);
  if (/ended without a finish reason/i.test(stringOf(found.message))) return cutShort(provider);
  const kind = kindOf(thrown);
  if (kind !== undefined) {
    const status = numberOf(found.statusCode);
    const message = withoutStop(stringOf(found.message));
    return new ModelError(kind, `${provider} gave no answer: ${message}.`, {
      provider,
      cause: thrown,
      ...(status === undefined ? {} : { status }),
    });
  }
  if (found.name === "AI_APICallError") return modelFailure(asClientError(thrown, found), provider, undefined);
  // In a stream, a provider may pass on the raw error of its API, which is not an `Error`.
  return modelFailure(thrown instanceof Error ? thrown : { error: errorIn(thrown) }, provider, undefined);
}

function kindOf(thrown: unknown): ModelFailure | undefined {
  const { name, cause, statusCode } = fieldsOf(thrown);
  // A response that cannot be parsed is reported as a failed call with a success status.
  const reason = name === "AI_APICallError" && (numberOf(statusCode) ?? 500) < 400 ? fieldsOf(cause).name : name;
  return KIND_OF_NAME[stringOf(reason)];
}

function errorIn(thrown: unknown): unknown {
  const { error } = fieldsOf(thrown);
  return error ?? (typeof thrown === "string" ? { message: thrown } : thrown);
}

/** A failed call in the form of the errors of HTTP clients. */
function asClientError(thrown: unknown, found: Readonly<Record<string, unknown>>): Error {
  const status = numberOf(found.statusCode);
  const headers = new Headers(fieldsOf(found.responseHeaders) as Record<string, string>);
  return Object.assign(new Error(stringOf(found.message), { cause: thrown }), {
    ...(status === undefined ? { name: "APIConnectionError" } : {}),
    // A success status is dropped: the response broke off after it.
    ...(status === undefined || status < 400 ? {} : { status }),
    headers,
    error: fieldsOf(found.data ?? parseObject(stringOf(found.responseBody))),
  });
}
