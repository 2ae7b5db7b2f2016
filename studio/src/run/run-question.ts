import { type Client, ClientError, type QuestionView } from "skein/client";
import type { Approval } from "../../../src/session/log/run-event.ts";
import type { Entry } from "../../../src/session/log/entry.ts";
import { answerIdOf } from "../../../src/session/log/open-runs.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { formatTime } from "../transcript/content/format.ts";

/** A question of a run, from its log or its events. */
export type RunQuestion = Approval | QuestionView;

/** The answer to a question. */
export interface Answer {
  readonly approve: boolean;
  /** The reason of a denial, which the model gets; or the note of an approval. */
  readonly text: string;
}

/**
 * Answers a question.
 *
 * @throws {Error} that names the other answer, if there is one already.
 */
export async function answerQuestion(
  client: Client,
  sessionId: string,
  question: string,
  { approve, text }: Answer,
): Promise<void> {
  try {
    if (approve) await client.runs.approve(sessionId, question, text === "" ? {} : { note: text });
    else await client.runs.deny(sessionId, question, text === "" ? {} : { reason: text });
  } catch (error) {
    if (!(error instanceof ClientError && error.code === "CONFLICT")) throw error;
    const given = await client.sessions.entry(sessionId, answerIdOf(question)).catch(() => null);
    const said = given === null ? null : describeAnswer(given);
    throw said === null ? error : new Error(`This was already answered. ${said}`);
  }
}

/** A sentence about an answer: who, when and how; null for an entry that is not an answer. */
export function describeAnswer(entry: Entry): string | null {
  if (entry.type !== "approval" || entry.decision === undefined) return null;
  const { approved, reason } = entry.decision as { readonly approved?: unknown; readonly reason?: unknown };
  const who = entry.by === undefined ? "" : ` by ${visibleText(entry.by.slice(0, 120))}`;
  const why = [reason, entry.note].filter((text) => typeof text === "string" && text !== "").map(String);
  const said = why.map((text) => `: ${visibleText(text.slice(0, 1000))}`).join("");
  return `${approved === true ? "Approved" : "Denied"}${who}, ${formatTime(entry.timestamp)}${said}`;
}
