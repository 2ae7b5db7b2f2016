import { SessionError, type SessionHead, type SessionStore } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { type ChatOutput, notice } from "../chat/chat-output.ts";
import type { ChatSession } from "../chat/chat-session.ts";
import { CHAT_JSON, CHAT_OPTIONS, openChat, type OpenedChat } from "../chat/open-chat.ts";
import { runChat } from "../chat/run-chat.ts";
import { type Command, type CommandContext, textOption } from "../command.ts";
import { openProgramTools } from "../options/program-tools.ts";
import { findSession, SESSION_ARGUMENT } from "../options/session-reference.ts";

/** Talks with an agent in a session. */
export const chat: Command = {
  name: "chat",
  summary: "Talk with an agent that works on the files of a directory.",
  details:
    "Without a session a new one is made with the first turn. Each line is a turn; one that begins with a slash is a command, and /help lists them. Through a pipe, each line is answered in turn, and calls that need a person's word are refused. The tools of --tools and --mcp, and those of skein.config.mjs in the current directory, come beside those of the workspace; their code runs in this program, as you.",
  arguments: [{ ...SESSION_ARGUMENT, optional: true }],
  options: { continue: { what: "go on in the latest session of the directory" }, ...CHAT_OPTIONS },
  examples: [
    { line: "skein chat", what: "talk with the model that needs no key" },
    { line: "skein chat --continue --model openai/gpt-5-mini", what: "go on here with another model" },
    { line: 'skein chat --tools ./tools.mjs --mcp "npx -y some-mcp-server ."', what: "with tools of your own" },
    { line: 'echo "list the files" | skein chat', what: "ask one thing and leave" },
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

/** The session to go on in, or null for a new one. */
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
 * Whether the tools may act in the directory: where the session says so itself, or the command line, or a person at the
 * terminal. What an imported session says is the word of its file.
 */
async function mayWorkHere(
  { values }: CommandContext,
  { header: { id, cwd, inherited } }: SessionHead,
  { session, frontEnd, atTerminal }: OpenedChat,
): Promise<boolean> {
  const { workspace } = session;
  const own = inherited === undefined;
  if (textOption(values, "workspace") !== undefined || (own && cwd === workspace)) return true;
  const belongs = own ? "belongs to" : "was imported, and says that it belongs to";
  const where = `Session ${id} ${cwd === null ? "belongs to no directory" : `${belongs} ${show(cwd)}`}`;
  if (atTerminal) return (await frontEnd.lines.confirm(`${where}. Let the tools act in ${show(workspace)}?`)) === "yes";
  throw new SessionError(
    "INVALID_OPTION",
    `${where}, and this is ${show(workspace)}; say where the tools act with --workspace.`,
  );
}

/** Goes on in a session. Where nobody is there to name another model, one that cannot be had is an error at the start. */
async function* goOn(session: ChatSession, { header }: SessionHead, atTerminal: boolean): AsyncGenerator<ChatOutput> {
  for await (const output of session.open(header.id)) {
    if (!atTerminal) void session.model;
    yield output;
  }
}

async function* welcome({ model, workspace }: ChatSession, atTerminal: boolean): AsyncGenerator<ChatOutput> {
  if (atTerminal) yield notice(`${model.provider}/${model.id} in ${workspace}; /help lists the commands.`);
}
