import type { Entry, EntryOf } from "../session/log/entry.ts";
import { type Message, textOf } from "../session/message.ts";
import type { TreeNode } from "../session/log/entry-tree.ts";
import { printable, type Terminal } from "./terminal.ts";

/**
 * Prints a session's trees; each entry with its position in the log, which commands accept as its name. An only child
 * is not indented, only branches are.
 */
export function printTree(
  terminal: Terminal,
  roots: readonly TreeNode[],
  options: { readonly leafId: string | null; readonly path: ReadonlySet<string> },
): void {
  const stack = roots
    .map((node, index) => ({ node, indent: "", last: index === roots.length - 1, forked: roots.length > 1 }))
    .reverse();
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    const { node, indent, last, forked } = item;
    const active = options.path.has(node.entry.id);
    const label = node.label === undefined ? "" : ` ${terminal.bold(`[${printable(node.label, 40)}]`)}`;
    const mark = node.entry.id === options.leafId ? terminal.green(" ← leaf") : "";
    const text = `${node.entry.seq} ${describeEntry(node.entry)}${label}${mark}`;
    terminal.line(`${indent}${forked ? (last ? "└─ " : "├─ ") : ""}${active ? text : terminal.dim(text)}`);
    const below = forked ? `${indent}${last ? "   " : "│  "}` : indent;
    const branches = node.children.length > 1;
    for (const [index, child] of [...node.children.entries()].reverse()) {
      stack.push({ node: child, indent: below, last: index === node.children.length - 1, forked: branches });
    }
  }
}

/** An entry on one line. */
export function describeEntry(entry: Entry): string {
  switch (entry.type) {
    case "message":
      return `${entry.message.role}: ${printable([textOf(entry.message.content), ...callsOf(entry.message)].join(" "), 70)}`;
    case "compaction":
      return `compaction of ${entry.tokensBefore} tokens: ${printable(entry.summary, 50)}`;
    case "branch_summary":
      return `summary of the branch left: ${printable(entry.summary, 50)}`;
    case "model_change":
      return `model: ${printable(`${entry.provider}/${entry.modelId}`, 60)}`;
    case "thinking_level_change":
      return `thinking: ${printable(entry.thinkingLevel, 60)}`;
    case "variables":
      return `variables: ${printable([...Object.keys(entry.set), ...settingsOf(entry)].join(", "), 60)}`;
    case "setup":
      return `setup of ${printable(entry.agent, 60)}`;
    default:
      return printable(entry.type, 60);
  }
}

function callsOf(message: Message): string[] {
  return message.role === "assistant" ? (message.toolCalls ?? []).map(({ name }) => `[${name}]`) : [];
}

function settingsOf(entry: EntryOf<"variables">): string[] {
  const { systemPrompt, activeTools, activeSkills } = entry;
  return Object.entries({ systemPrompt, activeTools, activeSkills }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
}
