import { SessionError } from "../../session/errors.ts";
import { textOf } from "../../session/message.ts";
import type { Usage } from "../../session/usage.ts";
import type { Model } from "../model/model.ts";
import { type SummaryRequest, summaryMessages } from "./summary-prompt.ts";

/** A summary with its usage and cost; both are empty if no model wrote it. */
export interface Summary {
  readonly text: string;
  readonly usage?: Usage;
  readonly cost?: number;
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
  const reply = await model.complete(
    { messages: summaryMessages(request), toolChoice: "none" },
    signal === undefined ? {} : { signal },
  );
  const name = `${model.provider}/${model.id}`;
  if ((reply.toolCalls?.length ?? 0) > 0) throw failed(`${name} called a tool instead of writing a summary`);
  if (reply.stopReason !== undefined && reply.stopReason !== "stop")
    throw failed(`${name} stopped with "${reply.stopReason}" before the summary was whole`);
  const text = textOf(reply.content).trim();
  if (text === "") throw failed(`${name} wrote an empty summary`);
  return { text, ...spendingOf(reply) };
}

/** The known parts of a usage and a cost. */
export function spendingOf({ usage, cost }: { usage?: Usage; cost?: number }): { usage?: Usage; cost?: number } {
  return { ...(usage === undefined ? {} : { usage }), ...(cost === undefined ? {} : { cost }) };
}

function failed(problem: string): SessionError {
  return new SessionError("SUMMARY_FAILED", `${problem}; nothing was changed.`);
}
