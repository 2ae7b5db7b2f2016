import { SessionError, type SessionHead, type SessionStore } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { type ChatOutput, notice } from "../chat/chat-output.ts";
import type { ChatSession } from "../chat/chat-session.ts";
import { CHAT_JSON, CHAT_OPTIONS, openChat, type OpenedChat } from "../chat/open-chat.ts";
import { runChat } from "../chat/run-chat.ts";
import { type Command, type CommandContext, textOption } from "../command.ts";
import { openProgramTools } from "../options/program-tools.ts";
import { findSession, SESSION_ARGUMENT } from "../options/session-reference.ts";
import { printable } from "../terminal.ts";

/** Talks with an agent in a session. */
export const chat: Command = {
  name: "chat",
  summary: "Chat with an agent that works on the files of a directory.",
  details:
    "Without a session, the first message creates a new one. Each line is a message; a line that begins with a slash is a command, and /help lists the commands. Through a pipe, the lines are answered one after the other, and calls that need approval are denied. Besides the workspace tools, the agent has the tools of --tools and --mcp, and those of skein.config.mjs in the current directory; their code runs in this program, with your rights.",
  arguments: [{ ...SESSION_ARGUMENT, optional: true }],
  options: { continue: { what: "continue the latest session of the directory" }, ...CHAT_OPTIONS },
  examples: [
    { line: "skein chat", what: "chat with the offline model, which needs no key" },
    { line: "skein chat --continue --model openai/gpt-5-mini", what: "continue here with another model" },
    { line: 'skein chat --tools ./tools.mjs --mcp "npx -y some-mcp-server ."', what: "with tools of your own" },
    { line: 'echo "list the files" | skein chat', what: "ask one question and leave" },
  ],
  json: CHAT_JSON,
  store: "made",
  runsTools: true,
  async run(context) {
    await using opened = await openProgramTools(context);
    const { tools } = opened;
    await using store = await context.openStore();
    await using chat = await openChat(context, store, { tools, unattended: "refused" });
    const { session, atTerminal } = chat;
    const head = await sessionFor(store, context, session.workspace);
    if (head !== null && !(await mayWorkHere(context, head, chat))) return 1;
    const opening = head === null ? welcome(session, atTerminal) : goOn(session, head, atTerminal);
    const done = await runChat(session, chat.frontEnd, opening);
    context.signal.throwIfAborted();
    return done || atTerminal ? 0 : 1;
  },
};

/** The session to continue; null for a new one. */
async function sessionFor(
  store: SessionStore,
  context: CommandContext,
  workspace: string,
): Promise<SessionHead | null> {
  const [reference] = context.positionals;
  const latest = context.values["continue"] === true;
  if (reference !== undefined) {
    if (latest) throw new SessionError("INVALID_OPTION", "Give a session or --continue, not both.");
    return findSession(store, reference);
  }
  if (!latest) return null;
  const { items } = await store.list({ cwd: workspace, status: ["active", "suspended"], limit: 1 });
  return items[0] ?? null;
}

/**
 * Whether the tools may work in the directory: the session belongs to it, the command line names it, or the person at
 * the terminal agrees. The directory that an imported session names is not trusted.
 */
async function mayWorkHere(
  { values }: CommandContext,
  { header: { id, cwd, inherited } }: SessionHead,
  { session, frontEnd, atTerminal }: OpenedChat,
): Promise<boolean> {
  const { workspace } = session;
  const own = inherited === undefined;
  if (textOption(values, "workspace") !== undefined || (own && cwd === workspace)) return true;
  const belongs = own ? "belongs to" : "was imported and claims to belong to";
  const where = `Session ${id} ${cwd === null ? "belongs to no directory" : `${belongs} ${printable(show(cwd))}`}`;
  if (atTerminal)
    return (await frontEnd.lines.confirm(`${where}. Let the tools work in ${printable(show(workspace))}?`)) === "yes";
  throw new SessionError(
    "INVALID_OPTION",
    `${where}, but this is ${show(workspace)}; give --workspace with the directory for the tools.`,
  );
}

/**
 * Continues a session. If no person can choose another model, a model that cannot be used is an error right away.
 */
async function* goOn(session: ChatSession, { header }: SessionHead, atTerminal: boolean): AsyncGenerator<ChatOutput> {
  for await (const output of session.open(header.id)) {
    if (!atTerminal) await session.model.prepare?.();
    yield output;
  }
}

async function* welcome({ model, workspace }: ChatSession, atTerminal: boolean): AsyncGenerator<ChatOutput> {
  await model.prepare?.();
  if (atTerminal) yield notice(`${model.provider}/${model.id} in ${workspace}; /help lists the commands.`);
}
