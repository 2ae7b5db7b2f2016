import { compact } from "../../agent/context/compact.ts";
import { type EntryOf, SessionError, type SessionTree, textOf } from "../../index.ts";
import { printTree } from "../print-tree.ts";
import { findEntry } from "../options/session-reference.ts";
import { createTerminal, printable } from "../terminal.ts";
import { type ChatCommand, textCommand } from "./chat-command.ts";
import { notice } from "./chat-output.ts";

/** The commands that show the session's tree and move in it. */
export const TREE_COMMANDS: Readonly<Record<string, ChatCommand>> = {
  tree: {
    usage: "/tree",
    summary: "Show all branches; each entry has a number.",
    on: "session",
    run: textCommand((_chat, _argument, tree) => drawTree(tree)),
  },
  branch: {
    usage: "/branch <entry or number>",
    summary: "Continue from another entry; what followed it stays on its own branch.",
    argument: "needed",
    on: "session",
    run: textCommand(async (_chat, given, tree) => {
      const entry = await findEntry(tree.store, await tree.refresh(), given);
      await tree.branch(entry.id);
      return `The next turn follows entry ${entry.seq}.`;
    }),
  },
  undo: {
    usage: "/undo",
    summary: "Go back to before your last turn.",
    on: "session",
    run: textCommand(async (_chat, _argument, tree) => {
      const { parentId, message } = await lastUserTurn(tree);
      await tree.branch(parentId);
      return `Back before: ${printable(textOf(message.content), 80)}`;
    }),
  },
  retry: {
    usage: "/retry",
    summary: "Get another answer to your last message; the first one stays on its own branch.",
    on: "session",
    async *run(chat, _argument, tree) {
      const { id } = await lastUserTurn(tree);
      await chat.checkNotForeign();
      yield* chat.turns.continueFrom(tree, await chat.answererFor(tree), id);
    },
  },
  fork: {
    usage: "/fork [name]",
    summary: "Continue in a new session that begins with the messages of this one.",
    on: "session",
    async *run(chat, name, tree) {
      const { sessionId } = await chat.manager.fork(tree.id, name || "fork", { turns: false });
      yield* chat.open(sessionId);
    },
  },
  compact: {
    usage: "/compact [instructions]",
    summary: "Summarize the older part of the context; the log keeps every message.",
    on: "session",
    run: (chat, instructions, tree) =>
      chat.turns.stoppable(async function* (signal) {
        const given = instructions === "" ? {} : { instructions };
        const entry = await compact(tree, { model: chat.model, signal, ...given });
        if (entry?.type !== "compaction") yield notice("The context is too short to be summarized.");
        else yield notice(`${entry.tokensBefore} tokens were replaced by this summary:\n${entry.summary}`);
      }),
  },
  label: {
    usage: "/label <text>",
    summary: "Put a label on the last entry.",
    argument: "needed",
    on: "session",
    run: textCommand(async (_chat, label, tree) => {
      const leaf = await tree.getLeaf();
      if (leaf === null) throw new SessionError("INVALID_OPTION", "There is no entry here to put a label on.");
      await tree.setLabel(leaf.id, label);
      return `Entry ${leaf.seq} is labelled ${printable(label)}.`;
    }),
  },
  name: {
    usage: "/name <text>",
    summary: "Name the session.",
    argument: "needed",
    on: "session",
    run: textCommand(async (_chat, name, tree) => {
      await tree.setName(name);
      return `The session is named ${printable(name)}.`;
    }),
  },
};

async function drawTree(tree: SessionTree): Promise<string> {
  const lines: string[] = [];
  const path = new Set((await tree.getBranch()).map(({ id }) => id));
  const terminal = createTerminal((text) => void lines.push(text), false);
  printTree(terminal, await tree.getTree(), { leafId: tree.leafId, path });
  return lines.join("").trimEnd();
}

async function lastUserTurn(tree: SessionTree): Promise<EntryOf<"message">> {
  const turn = (await tree.getBranch()).findLast((entry) => entry.type === "message" && entry.message.role === "user");
  if (turn?.type === "message") return turn;
  throw new SessionError("INVALID_OPTION", "This branch has no message of yours.");
}
