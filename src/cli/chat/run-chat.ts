import type { Approval } from "../../index.ts";
import { approvalQuestion } from "./approval-question.ts";
import type { ChatLines } from "./chat-lines.ts";
import { type ChatOutput, notice } from "./chat-output.ts";
import type { ChatSession } from "./chat-session.ts";

/** What a model is told of a call that was not allowed. */
export const REASONS = {
  no: "The user does not want that.",
  nobody: "Nobody is there to agree to it; --unasked says which calls run without a question.",
} as const;

/** What a chat is held with. */
export interface ChatFrontEnd {
  readonly lines: ChatLines;
  show(output: ChatOutput): void | Promise<void>;
}

/** Holds a chat until its lines end or the user leaves; whether everything that was asked for was done. */
export async function runChat(
  chat: ChatSession,
  frontEnd: ChatFrontEnd,
  opening: AsyncIterable<ChatOutput>,
): Promise<boolean> {
  let done = (await followChat(chat, frontEnd, opening)).done;
  for (;;) {
    const line = await frontEnd.lines.next(() => (chat.continues ? "… " : "> "));
    // Lines that ended in the middle of an input still make one.
    const followed = await followChat(chat, frontEnd, chat.take(line ?? ""));
    done &&= followed.done;
    if (followed.left || line === null) return done;
  }
}

/** Shows what a chat says and asks what it asks, until that is all; whether it was done, and whether the user leaves. */
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
    if (output.type === "run-event" && output.event.type === "approval-required" && chat.questions !== "parked") {
      await decide(chat, frontEnd, output.event.approval);
    }
  }
  return { done, left: false };
}

async function decide(chat: ChatSession, { lines, show }: ChatFrontEnd, approval: Approval): Promise<void> {
  const { text, question } = approvalQuestion(approval);
  if (text !== null && chat.questions === "asked") await show(notice(text));
  const word = await lines.confirm(question);
  if (word === "yes") await chat.decide(approval.question, { approved: true });
  else if (word !== "stopped") await chat.decide(approval.question, { approved: false, reason: REASONS[word] });
}

function hasFailed(output: ChatOutput): boolean {
  return output.type === "problem" || (output.type === "run-event" && output.event.type === "run-failed");
}
