import { findSession } from "../options/session-reference.ts";
import { printable } from "../terminal.ts";
import { type ChatCommand, idFrom, saying } from "./chat-command.ts";
import { modelName } from "./model-name.ts";
import { RECORD_COMMANDS } from "./record-commands.ts";
import { TREE_COMMANDS } from "./tree-commands.ts";

const SESSIONS_SHOWN_MAX = 20;

/** What a line with a slash can do, by the word after the slash. */
export const CHAT_COMMANDS: Readonly<Record<string, ChatCommand>> = {
  help: {
    usage: "/help",
    summary: "Show this list.",
    on: "anything",
    run: saying(async () => helpText()),
  },
  ...TREE_COMMANDS,
  ...RECORD_COMMANDS,
  model: {
    usage: "/model [provider/id]",
    summary: "Show the model that answers, or ask another one from here on.",
    on: "anything",
    run: saying(async (chat, name) => {
      if (name !== "") await chat.useModel(name);
      return `${modelName(chat.model)} answers.`;
    }),
  },
  sessions: {
    usage: "/sessions",
    summary: "List the latest sessions of this store.",
    on: "anything",
    run: saying(async (chat) => {
      const { items } = await chat.manager.list({ status: ["active", "suspended"], limit: SESSIONS_SHOWN_MAX });
      chat.listed.sessions = items.map(({ header }) => header.id);
      if (items.length === 0) return "There are no sessions yet.";
      return items
        .map(({ header, name, firstMessage, messageCount }, index) => {
          const here = header.id === chat.tree?.id ? " ← this one" : "";
          const title = printable(name ?? firstMessage ?? "nothing said yet", 50);
          const branch = header.forkedFrom?.branchName;
          const fork = branch === undefined ? "" : ` / ${printable(branch, 20)}`;
          return `${index + 1} ${header.id}  ${title}${fork} (${messageCount} turns)${here}`;
        })
        .join("\n");
    }),
  },
  open: {
    usage: "/open <session or number>",
    summary: "Go on in another session.",
    argument: "needed",
    on: "anything",
    async *run(chat, given) {
      const { header } = await findSession(chat.manager.store, idFrom(chat.listed.sessions, given));
      yield* chat.open(header.id);
    },
  },
  quit: {
    usage: "/quit",
    summary: "Leave; the session stays.",
    on: "anything",
    async *run() {
      yield { type: "chat-ended" };
    },
  },
};

function helpText(): string {
  const commands = Object.values(CHAT_COMMANDS);
  const width = Math.max(...commands.map(({ usage }) => usage.length));
  return [
    ...commands.map(({ usage, summary }) => `${usage.padEnd(width)}  ${summary}`),
    "A line that ends with \\ goes on in the next one. Ctrl-C stops a turn, Ctrl-D leaves.",
  ].join("\n");
}
