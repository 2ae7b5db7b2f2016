import { SessionError } from "../../session/errors.ts";
import { type Message, textOf } from "../../session/message.ts";
import type { Usage } from "../../session/usage.ts";
import type { Model, ModelReply, ModelRequest } from "../model/model.ts";
import { type SummaryRequest, summaryMessages } from "./summary-prompt.ts";

/** The usage and cost of a request, as far as they are known. */
export interface Spending {
  readonly usage?: Usage;
  readonly cost?: number;
}

/** A summary and the cost of the request for it; one that was written without a model has no cost. */
export interface Summary extends Spending {
  readonly text: string;
}

/**
 * Asks a model for a summary.
 *
 * @throws {SessionError} `SUMMARY_FAILED` for an answer that is empty, cut off, or not only text.
 */
export async function summarize(
  model: Model,
  request: SummaryRequest,
  signal: AbortSignal | undefined,
): Promise<Summary> {
  const reply = await ask(model, { messages: summaryMessages(request), toolChoice: "none" }, signal);
  const problem = problemOf(reply);
  if (problem !== null) throw failed(`${model.provider}/${model.id} ${problem}`);
  return { text: textOf(reply.content).trim(), ...spendingOf(reply) };
}

/**
 * Asks for a summary with a request that the provider has cached, and one more message. The tools and the tool choice of the request are
 * kept, because they are part of the cached prefix. The model may therefore call a tool; then `text` is null.
 */
export async function summarizeCached(
  model: Model,
  request: ModelRequest,
  question: Message,
  signal: AbortSignal | undefined,
): Promise<Spending & { readonly text: string | null }> {
  const { messages } = request;
  const reply = await ask(model, { ...request, messages: [...messages, question] }, signal);
  return { text: problemOf(reply) === null ? textOf(reply.content).trim() : null, ...spendingOf(reply) };
}

function ask(model: Model, request: ModelRequest, signal: AbortSignal | undefined): Promise<ModelReply> {
  return model.complete(request, signal === undefined ? {} : { signal });
}

/** Why an answer is not a summary; null if it is one. */
function problemOf({ toolCalls, stopReason, content }: ModelReply): string | null {
  if ((toolCalls?.length ?? 0) > 0) return "called a tool instead of writing a summary";
  if (stopReason !== undefined && stopReason !== "stop")
    return `stopped with "${stopReason}" before the summary was whole`;
  return textOf(content).trim() === "" ? "wrote an empty summary" : null;
}

/** The known parts of a usage and a cost. */
export function spendingOf({ usage, cost }: Spending): Spending {
  return { ...(usage === undefined ? {} : { usage }), ...(cost === undefined ? {} : { cost }) };
}

function failed(problem: string): SessionError {
  return new SessionError("SUMMARY_FAILED", `${problem}; nothing was changed.`);
}
