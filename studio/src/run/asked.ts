import { type Client, ClientError, type QuestionView } from "skein/client";
import type { Approval } from "../../../src/session/log/run-event.ts";
import type { Entry } from "../../../src/session/log/entry.ts";
import { answerIdOf } from "../../../src/session/log/open-runs.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { formatTime } from "../transcript/content/format.ts";

/** A question of a run, as its log or its events tell it. */
export type Asked = Approval | QuestionView;

/** A person's word on a question. */
export interface Answer {
  readonly approve: boolean;
  /** For a refusal the reason, which the model is told; else a note for the record. */
  readonly text: string;
}

/**
 * Answers a question.
 *
 * @throws {Error} that says who was faster, where the question has another answer.
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
    throw said === null ? error : new Error(`This was answered already. ${said}`);
  }
}

/** Who answered a question, when and how, in a sentence; null for an entry that answers none. */
export function describeAnswer(entry: Entry): string | null {
  if (entry.type !== "approval" || entry.decision === undefined) return null;
  const { approved, reason } = entry.decision as { readonly approved?: unknown; readonly reason?: unknown };
  const who = entry.by === undefined ? "" : ` by ${visibleText(entry.by.slice(0, 120))}`;
  const why = [reason, entry.note].filter((text) => typeof text === "string" && text !== "").map(String);
  const said = why.map((text) => `: ${visibleText(text.slice(0, 1000))}`).join("");
  return `${approved === true ? "Approved" : "Denied"}${who}, ${formatTime(entry.timestamp)}${said}`;
}
