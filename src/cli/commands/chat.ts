import { SessionError, type SessionStore } from "../../index.ts";
import { type ChatOutput, notice } from "../chat/chat-output.ts";
import type { ChatSession } from "../chat/chat-session.ts";
import { CHAT_JSON, CHAT_OPTIONS, openChat } from "../chat/open-chat.ts";
import { runChat } from "../chat/run-chat.ts";
import type { Command, CommandContext } from "../command.ts";
import { findSession, SESSION_ARGUMENT } from "../options/session-reference.ts";

/** Talks with an agent in a session. */
export const chat: Command = {
  name: "chat",
  summary: "Talk with an agent that works on the files of a directory.",
  details:
    "Without a session a new one is made with the first turn. Each line is a turn; one that begins with a slash is a command, and /help lists them. Through a pipe, each line is answered in turn, and calls that need a person's word are refused.",
  arguments: [{ ...SESSION_ARGUMENT, optional: true }],
  options: { continue: { what: "go on in the latest session of the directory" }, ...CHAT_OPTIONS },
  examples: [
    { line: "skein chat", what: "talk with the model that needs no key" },
    { line: "skein chat --continue --model openai/gpt-5-mini", what: "go on here with another model" },
    { line: 'echo "list the files" | skein chat', what: "ask one thing and leave" },
  ],
  json: CHAT_JSON,
  store: "made",
  runsTools: true,
  async run(context) {
    await using store = await context.openStore();
    await using chat = await openChat(context, store, "refused");
    const { session, atTerminal } = chat;
    const sessionId = await sessionFor(store, context, session.workspace);
    const opening = sessionId === null ? welcome(session, atTerminal) : session.open(sessionId);
    const done = await runChat(session, chat.frontEnd, opening);
    context.signal.throwIfAborted();
    return done || atTerminal ? 0 : 1;
  },
};

/** The session to go on in, or null for a new one. */
async function sessionFor(store: SessionStore, context: CommandContext, workspace: string): Promise<string | null> {
  const [reference] = context.positionals;
  const latest = context.values["continue"] === true;
  if (reference !== undefined) {
    if (latest) throw new SessionError("INVALID_OPTION", "Give a session or --continue, not both.");
    return (await findSession(store, reference)).header.id;
  }
  if (!latest) return null;
  const { items } = await store.list({ cwd: workspace, status: ["active", "suspended"], limit: 1 });
  return items[0]?.header.id ?? null;
}

async function* welcome({ model, workspace }: ChatSession, atTerminal: boolean): AsyncGenerator<ChatOutput> {
  if (atTerminal) yield notice(`${model.provider}/${model.id} in ${workspace}; /help lists the commands.`);
}
