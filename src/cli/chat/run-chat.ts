import type { Approval } from "../../index.ts";
import { printable } from "../terminal.ts";
import type { ChatLines } from "./chat-lines.ts";
import type { ChatOutput } from "./chat-output.ts";
import type { ChatSession } from "./chat-session.ts";

const QUESTION_CHARACTERS_MAX = 200;
const REASONS = {
  no: "The user does not want that.",
  nobody: "Nobody is there to agree to it; --approve lets such calls run.",
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
        await decide(chat, lines, output.event.approval);
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

async function decide(
  chat: ChatSession,
  lines: ChatLines,
  { callId, name, arguments: given }: Approval,
): Promise<void> {
  const call = `${printable(name)} ${printable(JSON.stringify(given), QUESTION_CHARACTERS_MAX)}`;
  const word = await lines.confirm(`Allow ${call}?`);
  if (word === "yes") await chat.decide(callId, { approved: true });
  else if (word !== "stopped") await chat.decide(callId, { approved: false, reason: REASONS[word] });
}

function hasFailed(output: ChatOutput): boolean {
  return output.type === "problem" || (output.type === "run-event" && output.event.type === "run-failed");
}
