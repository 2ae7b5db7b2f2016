import type { Approval } from "../../index.ts";
import { approvalQuestion } from "./approval-question.ts";
import type { ChatLines } from "./chat-lines.ts";
import { type ChatOutput, notice } from "./chat-output.ts";
import type { ChatSession } from "./chat-session.ts";

/** The input and output of a chat. */
export interface ChatFrontEnd {
  readonly lines: ChatLines;
  show(output: ChatOutput): void | Promise<void>;
}

/** Runs a chat until its input ends or the user leaves; resolves to false if anything failed. */
export async function runChat(
  chat: ChatSession,
  frontEnd: ChatFrontEnd,
  opening: AsyncIterable<ChatOutput>,
): Promise<boolean> {
  let done = (await followChat(chat, frontEnd, opening)).done;
  for (;;) {
    const line = await frontEnd.lines.next(() => (chat.continues ? "… " : "> "));
    // Lines that ended in the middle of an input still make one.
    const shown = await followChat(chat, frontEnd, chat.handleLine(line ?? ""));
    done &&= shown.done;
    if (shown.left || line === null) return done;
  }
}

/**
 * Shows the outputs of a chat and asks its questions; resolves to whether all went well, and whether the user leaves.
 */
export async function followChat(
  chat: ChatSession,
  frontEnd: ChatFrontEnd,
  outputs: AsyncIterable<ChatOutput>,
): Promise<{ readonly done: boolean; readonly left: boolean }> {
  let done = true;
  for await (const output of outputs) {
    if (output.type === "chat-ended") return { done, left: true };
    if (hasFailed(output)) done = false;
    await frontEnd.show(output);
    const approval = askedIn(output);
    if (approval !== null && chat.questions !== "parked") await decide(chat, frontEnd, approval);
  }
  return { done, left: false };
}

async function decide(chat: ChatSession, { lines, show }: ChatFrontEnd, approval: Approval): Promise<void> {
  const { text, question } = approvalQuestion(approval);
  if (text !== null && chat.questions === "asked") await show(notice(text));
  await chat.decide(approval.question, await lines.confirm(question));
}

function askedIn(output: ChatOutput): Approval | null {
  if (output.type === "question") return output.approval;
  return output.type === "run-event" && output.event.type === "approval-required" ? output.event.approval : null;
}

function hasFailed(output: ChatOutput): boolean {
  return output.type === "problem" || (output.type === "run-event" && output.event.type === "run-failed");
}
