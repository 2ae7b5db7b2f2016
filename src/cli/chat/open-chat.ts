import { createModel, type Model, type SessionStore, type Tool } from "../../index.ts";
import { defined } from "../../internal/defined.ts";
import { type CommandContext, type CommandOption, textOption } from "../command.ts";
import { openManager } from "../open-manager.ts";
import { TOOL_OPTIONS } from "../options/program-tools.ts";
import { ASK_OPTIONS, askOption } from "../options/ask-option.ts";
import { workspaceAt } from "../options/workspace-option.ts";
import { chatJson } from "./chat-json.ts";
import { ChatLines } from "./chat-lines.ts";
import type { ChatOutput } from "./chat-output.ts";
import { ChatPrinter } from "./chat-printer.ts";
import { type ChatInit, ChatSession } from "./chat-session.ts";
import type { ChatQuestions, OtherAgents } from "./chat-turns.ts";
import { modelName } from "./model-name.ts";
import type { ChatFrontEnd } from "./run-chat.ts";

/** The options of a command whose agent is that of a chat. */
export const AGENT_OPTIONS: Readonly<Record<string, CommandOption>> = {
  model: {
    what: "which model answers; without it the session's last one, or in a new session the offline one, which needs no key",
    value: "PROVIDER/MODEL",
  },
  system: { what: "the agent's instructions", value: "TEXT" },
  ...ASK_OPTIONS,
};

/** The options of a command that answers as a chat does. */
export const CHAT_OPTIONS: Readonly<Record<string, CommandOption>> = {
  ...AGENT_OPTIONS,
  workspace: {
    what: "the directory that the tools act in, made where it is missing (default: this one; a session of another asks first)",
    value: "DIRECTORY",
  },
  ...TOOL_OPTIONS,
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
export function chatInit(context: CommandContext): Pick<ChatInit, "models" | "ask" | "model" | "system"> {
  const { values } = context;
  const [model, system] = [textOption(values, "model"), textOption(values, "system")];
  return { models: (name) => createModel(name), ask: askOption(context), ...defined({ model, system }) };
}

/** A chat at this program's terminal, or through its pipe. */
export interface OpenedChat extends AsyncDisposable {
  readonly session: ChatSession;
  readonly frontEnd: ChatFrontEnd;
  /** Whether someone sits at a terminal. */
  readonly atTerminal: boolean;
}

/** What a chat is held with beside what the command line says. */
export interface ChatSetup {
  /** What the agent can call beside the workspace tools. */
  readonly tools: readonly Tool[];
  /** What becomes of questions where nobody is there. */
  readonly unattended: ChatQuestions;
  /** What may go on with runs of other agents. */
  readonly others?: OtherAgents;
  /** Models that the command line does not name. */
  readonly models?: readonly Model[];
}

/** Opens a chat as a command line asks for it. */
export async function openChat(
  context: CommandContext,
  store: SessionStore,
  { tools, unattended, others, models = [] }: ChatSetup,
): Promise<OpenedChat> {
  const { values, signal } = context;
  const init = chatInit(context);
  const workspace = await workspaceAt(textOption(values, "workspace") ?? ".", values);
  const atTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true && !context.json;
  const manager = openManager(store);
  const session = new ChatSession({
    ...init,
    ...{ manager, workspace, tools, questions: atTerminal ? "asked" : unattended },
    models: (name) => models.find((model) => modelName(model) === name) ?? init.models(name),
    ...defined({ others }),
  });
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
