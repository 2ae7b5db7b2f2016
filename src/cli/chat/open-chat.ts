import { createModel, type Model, type SessionStore, type Tool } from "../../index.ts";
import { defined } from "../../internal/defined.ts";
import { type CommandContext, type CommandOption, textOption } from "../command.ts";
import { openManager } from "../open-manager.ts";
import { TOOL_OPTIONS } from "../options/program-tools.ts";
import { ASK_OPTIONS, askOption } from "../options/ask-option.ts";
import { workspaceAt } from "../options/workspace-option.ts";
import { ChatLines } from "./chat-lines.ts";
import { type ChatOutput, chatJson } from "./chat-output.ts";
import { ChatPrinter } from "./chat-printer.ts";
import { type ChatInit, ChatSession } from "./chat-session.ts";
import type { ChatQuestions, OtherAgents } from "./chat-turns.ts";
import { modelName } from "./model-name.ts";
import type { ChatFrontEnd } from "./run-chat.ts";

/** The options of a command that runs the chat's agent. */
export const AGENT_OPTIONS: Readonly<Record<string, CommandOption>> = {
  model: {
    what: "the model that answers (default: the session's last model; in a new session the offline model, which needs no key)",
    value: "PROVIDER/MODEL",
  },
  system: { what: "the agent's instructions", value: "TEXT" },
  ...ASK_OPTIONS,
};

/** The options of a command that runs the chat's agent in a workspace. */
export const CHAT_OPTIONS: Readonly<Record<string, CommandOption>> = {
  ...AGENT_OPTIONS,
  workspace: {
    what: "the directory that the tools work in, created if missing (default: the current one; asks first if the session belongs to another)",
    value: "DIRECTORY",
  },
  ...TOOL_OPTIONS,
};

/** The fields of the objects that a chat prints with `--json`. */
export const CHAT_JSON: Readonly<Record<string, string>> = {
  type: "session-opened, notice, problem, or the type of a run event; each object is on its own line",
  text: "the text of a text-delta, thinking-delta, notice or problem",
  sessionId: "the session id of a session-opened",
  runId: "the id of the run that an event belongs to",
  error: "code, message and details of a run-failed or model-retry",
};

/** The parts of a chat that the options of the command line set. */
export function chatInit(context: CommandContext): Pick<ChatInit, "models" | "ask" | "model" | "system"> {
  const { values } = context;
  const [model, system] = [textOption(values, "model"), textOption(values, "system")];
  return { models: (name) => createModel(name), ask: askOption(context), ...defined({ model, system }) };
}

/** A chat at this program's terminal, or over its standard input. */
export interface OpenedChat extends AsyncDisposable {
  readonly session: ChatSession;
  readonly frontEnd: ChatFrontEnd;
  /** True if a person types at a terminal. */
  readonly atTerminal: boolean;
}

/** The parts of a chat that the options do not set. */
export interface ChatSetup {
  /** Tools of the agent beside the workspace tools. */
  readonly tools: readonly Tool[];
  /** What happens to questions if no person can be asked. */
  readonly unattended: ChatQuestions;
  /** Other agents whose runs may be recovered. */
  readonly others?: OtherAgents;
  /** Models that are not created by name. */
  readonly models?: readonly Model[];
}

/** Opens a chat for a command line. */
export async function openChat(
  context: CommandContext,
  store: SessionStore,
  { tools, unattended, others, models = [] }: ChatSetup,
): Promise<OpenedChat> {
  const { values, signal } = context;
  const init = chatInit(context);
  const workspace = await workspaceAt(textOption(values, "workspace") ?? ".", values);
  const atTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true && !context.json;
  const manager = await openManager(store);
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
  session.discardPendingLines();
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
