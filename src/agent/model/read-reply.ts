import { checkedMessage } from "../../session/checked-message.ts";
import { SessionError } from "../../session/errors.ts";
import type { AssistantMessage, ToolCall } from "../../session/message.ts";
import { ModelError } from "./model-error.ts";
import type { Model, ModelReply } from "./model.ts";

/**
 * Converts a model's answer into a message of a session, with distinct call ids.
 *
 * @throws {ModelError} `malformed` for a value that is not an answer.
 */
export function readReply(reply: ModelReply, model: Model | undefined, agent: string | undefined): AssistantMessage {
  const provider = model?.provider ?? "executor";
  try {
    if (reply?.role !== "assistant") throw new TypeError("It is not an assistant message.");
    const named = agent === undefined ? reply : { ...reply, agent };
    return checkedMessage(withDistinctIds(named)) as AssistantMessage;
  } catch (cause) {
    throw new ModelError("malformed", `${provider} answered with something that is not an answer.`, {
      provider,
      cause,
    });
  }
}

/** @throws {SessionError} for an answer whose stop reason says that it failed or was aborted. */
export function checkWhole(message: AssistantMessage, model: Model | undefined): void {
  const provider = model?.provider ?? "executor";
  if (message.stopReason === "error") {
    throw new ModelError("other", `${provider} answered with an error.`, { provider, cause: message });
  }
  if (message.stopReason === "aborted") throw new SessionError("ABORTED", `${provider} broke its answer off.`);
}

/** Results refer to calls by id, so calls without an id, or with equal ids, would be ambiguous. */
function withDistinctIds(reply: ModelReply): ModelReply {
  const given = reply.toolCalls ?? [];
  const ids = new Set<string>();
  const toolCalls = given.map((call, index): ToolCall => {
    const first = call.id || `call_${index + 1}`;
    let id = first;
    for (let n = 2; ids.has(id); n++) id = `${first}_${n}`;
    ids.add(id);
    return id === call.id ? call : { ...call, id };
  });
  if (toolCalls.every((call, index) => call === given[index])) return reply;
  // The provider's own blocks still have the old ids, which would not match the results.
  const { providerData: _replaced, ...rest } = reply;
  return { ...rest, toolCalls };
}
