import { createModel, SessionError, type SessionStore } from "../../index.ts";
import { chatJson } from "../chat/chat-json.ts";
import { ChatLines } from "../chat/chat-lines.ts";
import { type ChatOutput, notice } from "../chat/chat-output.ts";
import { ChatPrinter } from "../chat/chat-printer.ts";
import { ChatSession } from "../chat/chat-session.ts";
import { runChat } from "../chat/run-chat.ts";
import { type Command, type CommandContext, textOption } from "../command.ts";
import { openManager } from "../open-manager.ts";
import { findSession, SESSION_ARGUMENT } from "../session-reference.ts";
import { UNASKED_OPTIONS, unaskedOption } from "../unasked-option.ts";
import { workspaceAt } from "../workspace-option.ts";

/** Talks with an agent in a session. */
export const chat: Command = {
  name: "chat",
  summary: "Talk with an agent that works on the files of a directory.",
  details:
    "Without a session a new one is made with the first turn. Each line is a turn; one that begins with a slash is a command, and /help lists them. Through a pipe, each line is answered in turn, and calls that need a person's word are refused.",
  arguments: [{ ...SESSION_ARGUMENT, optional: true }],
  options: {
    continue: { what: "go on in the latest session of the directory" },
    model: {
      what: "which model answers; without it the session's last one, else one that needs no key",
      value: "PROVIDER/MODEL",
    },
    workspace: { what: "the directory that the tools act in", value: "DIRECTORY", default: "." },
    system: { what: "the agent's instructions", value: "TEXT" },
    ...UNASKED_OPTIONS,
  },
  examples: [
    { line: "skein chat", what: "talk with the model that needs no key" },
    { line: "skein chat --continue --model openai/gpt-5-mini", what: "go on here with another model" },
    { line: 'echo "list the files" | skein chat', what: "ask one thing and leave" },
  ],
  json: {
    type: "what happened: session-opened, notice, problem, or an event of a run, one object on each line",
    text: "what was said, for text-delta, thinking-delta, notice and problem",
    sessionId: "the session's id, for session-opened",
    runId: "the run that an event belongs to",
    error: "code, message and details, for run-failed and model-retry",
  },
  store: "made",
  runsTools: true,
  async run(context) {
    const { values, signal } = context;
    const unasked = unaskedOption(context);
    const workspace = await workspaceAt(textOption(values, "workspace") ?? ".");
    const { model, system } = { model: textOption(values, "model"), system: textOption(values, "system") };
    const atTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true && !context.json;
    await using store = await context.openStore();
    const sessionId = await sessionFor(store, context, workspace);
    await using manager = openManager(store);
    await using session = new ChatSession({
      manager,
      models: (name) => createModel(name),
      workspace,
      unasked,
      attended: atTerminal,
      ...(model === undefined ? {} : { model }),
      ...(system === undefined ? {} : { system }),
    });
    using lines = new ChatLines({
      input: process.stdin,
      terminal: atTerminal ? process.stdout : null,
      interrupt: () => stop(session),
    });
    const leave = (): void => {
      session.interrupt();
      lines.close();
    };
    signal.addEventListener("abort", leave, { once: true });
    const opening = sessionId === null ? welcome(session, atTerminal) : session.open(sessionId);
    const done = await runChat(session, { lines, show: showIn(context) }, opening);
    signal.throwIfAborted();
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

function stop(session: ChatSession): boolean {
  session.forgetBegun();
  return session.interrupt();
}

async function* welcome({ model, workspace }: ChatSession, atTerminal: boolean): AsyncGenerator<ChatOutput> {
  if (atTerminal) yield notice(`${model.provider}/${model.id} in ${workspace}; /help lists the commands.`);
}

function showIn(context: CommandContext): (output: ChatOutput) => void | Promise<void> {
  if (context.json) return (output) => context.printJson(chatJson(output));
  const { terminal } = context;
  const printer = new ChatPrinter({
    write: (text) => context.write(text),
    fail: (text) => context.fail(text),
    dim: (text) => terminal.dim(text),
  });
  return (output) => printer.print(output);
}
