import type { Approval } from "../../index.ts";
import { approvalQuestion } from "./approval-question.ts";
import type { ChatLines } from "./chat-lines.ts";
import { type ChatOutput, notice } from "./chat-output.ts";
import type { ChatSession } from "./chat-session.ts";

const REASONS = {
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
  { lines, show }: ChatFrontEnd,
  opening: AsyncIterable<ChatOutput>,
): Promise<boolean> {
  let done = true;
  const follow = async (outputs: AsyncIterable<ChatOutput>): Promise<boolean> => {
    for await (const output of outputs) {
      if (output.type === "chat-ended") return false;
      if (hasFailed(output)) done = false;
      await show(output);
      if (output.type === "run-event" && output.event.type === "approval-required") {
        await decide(chat, { lines, show }, output.event.approval);
      }
    }
    return true;
  };
  await follow(opening);
  for (;;) {
    const line = await lines.next(() => (chat.continues ? "… " : "> "));
    // Lines that ended in the middle of an input still make one.
    if (!(await follow(chat.take(line ?? ""))) || line === null) return done;
  }
}

async function decide(chat: ChatSession, { lines, show }: ChatFrontEnd, approval: Approval): Promise<void> {
  const { callId } = approval;
  const { text, question } = approvalQuestion(approval);
  if (text !== null && chat.attended) await show(notice(text));
  const word = await lines.confirm(question);
  if (word === "yes") await chat.decide(callId, { approved: true });
  else if (word !== "stopped") await chat.decide(callId, { approved: false, reason: REASONS[word] });
}

function hasFailed(output: ChatOutput): boolean {
  return output.type === "problem" || (output.type === "run-event" && output.event.type === "run-failed");
}
