import { compact } from "../../agent/context/compact.ts";
import { type Entry, type EntryOf, SessionError, type SessionTree, textOf } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { printTree } from "../print-tree.ts";
import { createTerminal, printable } from "../terminal.ts";
import { type ChatCommand, saying } from "./chat-command.ts";
import { notice } from "./chat-output.ts";

/** The commands that look at the session's tree and move in it. */
export const TREE_COMMANDS: Readonly<Record<string, ChatCommand>> = {
  tree: {
    usage: "/tree",
    summary: "Show all branches, each entry with its number.",
    on: "session",
    run: saying((_chat, _argument, tree) => drawTree(tree)),
  },
  branch: {
    usage: "/branch <entry or number>",
    summary: "Go on from another entry; what came after it stays on its own branch.",
    argument: "needed",
    on: "session",
    run: saying(async (_chat, given, tree) => {
      const entry = await findEntry(tree, given);
      await tree.branch(entry.id);
      return `The next turn follows entry ${entry.seq}.`;
    }),
  },
  undo: {
    usage: "/undo",
    summary: "Go back to before your last turn.",
    on: "session",
    run: saying(async (_chat, _argument, tree) => {
      const { parentId, message } = await lastUserTurn(tree);
      await tree.branch(parentId);
      return `Back to before: ${printable(textOf(message.content), 80)}`;
    }),
  },
  retry: {
    usage: "/retry",
    summary: "Get another answer to your last turn; the first stays on its own branch.",
    on: "session",
    async *run(chat, _argument, tree) {
      const { id } = await lastUserTurn(tree);
      yield* chat.turns.goOn(tree, await chat.answererFor(tree), id);
    },
  },
  fork: {
    usage: "/fork [name]",
    summary: "Go on in a new session that begins with this one.",
    on: "session",
    async *run(chat, name, tree) {
      const { sessionId } = await chat.manager.fork(tree.id, name || "fork", { turns: false });
      yield* chat.open(sessionId);
    },
  },
  compact: {
    usage: "/compact [instructions]",
    summary: "Replace the older part of the context by a summary; the log keeps every word.",
    on: "session",
    run: (chat, instructions, tree) =>
      chat.turns.stoppable(async function* (signal) {
        const wishes = instructions === "" ? {} : { instructions };
        const entry = await compact(tree, { model: chat.model, signal, ...wishes });
        if (entry?.type !== "compaction") yield notice("Nothing is old enough to be summarised yet.");
        else yield notice(`${entry.tokensBefore} tokens were summarised:\n${entry.summary}`);
      }),
  },
  label: {
    usage: "/label <text>",
    summary: "Put a label on the last entry.",
    argument: "needed",
    on: "session",
    run: saying(async (_chat, label, tree) => {
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
    run: saying(async (_chat, name, tree) => {
      await tree.setName(name);
      return `The session is called ${printable(name)}.`;
    }),
  },
};

async function drawTree(tree: SessionTree): Promise<string> {
  const lines: string[] = [];
  const path = new Set((await tree.getBranch()).map(({ id }) => id));
  const terminal = createTerminal((text) => void lines.push(text), false);
  printTree(terminal, await tree.getTree(), { leafId: tree.leafId, path, numbered: true });
  return lines.join("").trimEnd();
}

/** The entry of an id, or with that position in the log. */
async function findEntry(tree: SessionTree, given: string): Promise<Entry> {
  const byId = await tree.getEntry(given);
  if (byId !== null) return byId;
  if (/^\d{1,15}$/.test(given)) {
    for await (const entry of tree.store.read(tree.id, { after: Number(given) - 1, limit: 1 })) return entry;
  }
  throw new SessionError("UNKNOWN_ENTRY", `This session has no entry ${show(given)}; /tree shows their numbers.`);
}

async function lastUserTurn(tree: SessionTree): Promise<EntryOf<"message">> {
  const turn = (await tree.getBranch()).findLast((entry) => entry.type === "message" && entry.message.role === "user");
  if (turn?.type === "message") return turn;
  throw new SessionError("INVALID_OPTION", "You have not said anything on this branch.");
}
