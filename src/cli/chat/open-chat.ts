import { createModel, type SessionStore } from "../../index.ts";
import { defined } from "../../internal/defined.ts";
import { type CommandContext, type CommandOption, textOption } from "../command.ts";
import { openManager } from "../open-manager.ts";
import { UNASKED_OPTIONS, unaskedOption } from "../options/unasked-option.ts";
import { workspaceAt } from "../options/workspace-option.ts";
import { chatJson } from "./chat-json.ts";
import { ChatLines } from "./chat-lines.ts";
import type { ChatOutput } from "./chat-output.ts";
import { ChatPrinter } from "./chat-printer.ts";
import { type ChatInit, ChatSession } from "./chat-session.ts";
import type { ChatQuestions } from "./chat-turns.ts";
import type { ChatFrontEnd } from "./run-chat.ts";

/** The options of a command that answers as a chat does. */
export const CHAT_OPTIONS: Readonly<Record<string, CommandOption>> = {
  model: {
    what: "which model answers; without it the session's last one, else one that needs no key",
    value: "PROVIDER/MODEL",
  },
  workspace: { what: "the directory that the tools act in", value: "DIRECTORY", default: "." },
  system: { what: "the agent's instructions", value: "TEXT" },
  ...UNASKED_OPTIONS,
};

/** What each field of the objects that a chat prints with `--json` holds. */
export const CHAT_JSON: Readonly<Record<string, string>> = {
  type: "what happened: session-opened, notice, problem, or an event of a run, one object on each line",
  text: "what was said, for text-delta, thinking-delta, notice and problem",
  sessionId: "the session's id, for session-opened",
  runId: "the run that an event belongs to",
  error: "code, message and details, for run-failed and model-retry",
};

/** What a chat is made of that the command line says. */
export function chatInit(context: CommandContext): Pick<ChatInit, "models" | "unasked" | "model" | "system"> {
  const { values } = context;
  const [model, system] = [textOption(values, "model"), textOption(values, "system")];
  return { models: (name) => createModel(name), unasked: unaskedOption(context), ...defined({ model, system }) };
}

/** A chat at this program's terminal, or through its pipe. */
export interface OpenedChat extends AsyncDisposable {
  readonly session: ChatSession;
  readonly frontEnd: ChatFrontEnd;
  /** Whether someone sits at a terminal. */
  readonly atTerminal: boolean;
}

/** Opens a chat as a command line asks for it; `unattended` says what becomes of questions where nobody is there. */
export async function openChat(
  context: CommandContext,
  store: SessionStore,
  unattended: ChatQuestions,
): Promise<OpenedChat> {
  const { values, signal } = context;
  const init = chatInit(context);
  const workspace = await workspaceAt(textOption(values, "workspace") ?? ".");
  const atTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true && !context.json;
  const manager = openManager(store);
  const session = new ChatSession({ ...init, manager, workspace, questions: atTerminal ? "asked" : unattended });
  const lines = new ChatLines({
    input: process.stdin,
    terminal: atTerminal ? process.stdout : null,
    interrupt: () => stop(session),
  });
  const leave = (): void => {
    session.interrupt();
    lines.close();
  };
  signal.addEventListener("abort", leave, { once: true });
  return {
    session,
    frontEnd: { lines, show: showIn(context) },
    atTerminal,
    async [Symbol.asyncDispose]() {
      lines.close();
      await session[Symbol.asyncDispose]();
      await manager[Symbol.asyncDispose]();
    },
  };
}

function stop(session: ChatSession): boolean {
  session.forgetBegun();
  return session.interrupt();
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
