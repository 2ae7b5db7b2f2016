import { listLines } from "../help.ts";
import { findSession, titleOf } from "../options/session-reference.ts";
import { type ChatCommand, idFrom, textCommand } from "./chat-command.ts";
import { RECORD_COMMANDS } from "./record-commands.ts";
import { TREE_COMMANDS } from "./tree-commands.ts";

const SESSIONS_SHOWN_MAX = 20;

const QUIT: ChatCommand = {
  usage: "/quit or /exit",
  summary: "Leave the chat; the session is kept.",
  on: "anything",
  async *run() {
    yield { type: "chat-ended" };
  },
};

/** The commands of a chat, by the word after the slash. */
export const CHAT_COMMANDS: Readonly<Record<string, ChatCommand>> = {
  help: {
    usage: "/help",
    summary: "Show this list.",
    on: "anything",
    run: textCommand(async () => helpText()),
  },
  ...TREE_COMMANDS,
  ...RECORD_COMMANDS,
  model: {
    usage: "/model [provider/id]",
    summary: "Show the model that answers, or switch to another one.",
    on: "anything",
    run: textCommand(async (chat, name) => {
      if (name !== "") await chat.useModel(name);
      return `${chat.modelName} answers.`;
    }),
  },
  sessions: {
    usage: "/sessions",
    summary: "List the latest sessions of this store.",
    on: "anything",
    run: textCommand(async (chat) => {
      const { items } = await chat.manager.list({ status: ["active", "suspended"], limit: SESSIONS_SHOWN_MAX });
      chat.listed.sessions = items.map(({ header }) => header.id);
      if (items.length === 0) return "There are no sessions yet.";
      return items
        .map((head, index) => {
          const { header, messageCount } = head;
          const here = header.id === chat.tree?.id ? " ← this one" : "";
          return `${index + 1} ${header.id}  ${titleOf(head) || "no messages yet"} (${messageCount} turns)${here}`;
        })
        .join("\n");
    }),
  },
  open: {
    usage: "/open <session or number>",
    summary: "Switch to another session.",
    argument: "needed",
    on: "anything",
    async *run(chat, given) {
      const { header } = await findSession(chat.manager.store, idFrom(chat.listed.sessions, given));
      yield* chat.open(header.id);
    },
  },
  quit: QUIT,
  exit: QUIT,
};

function helpText(): string {
  const commands = [...new Set(Object.values(CHAT_COMMANDS))].map(({ usage, summary }) => [usage, summary] as const);
  return [
    ...listLines(commands, process.stdout.columns),
    "End a line with \\ to continue it on the next one. Ctrl-C stops a turn, Ctrl-D leaves the chat.",
  ].join("\n");
}
