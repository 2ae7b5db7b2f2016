import type { Entry, EntryOf } from "../../../session/log/entry.ts";
import { attachmentBytes, type Message, partsOf, textOf } from "../../../session/message.ts";
import { describeEntry } from "../../print-tree.ts";
import { printable, printableText, type Terminal } from "../../terminal.ts";

const ARGUMENTS_CHARACTERS_MAX = 200;

/**
 * Prints one entry of a transcript: a message with all its text, any other entry on one line. A tool result is printed
 * with the approval or denial of its call.
 */
export function printEntry(terminal: Terminal, entry: Entry, answer: EntryOf<"approval"> | null = null): void {
  terminal.line();
  if (entry.type !== "message") {
    terminal.line(terminal.dim(`${describeEntry(entry)}  ${printable(entry.id, 512)}`));
    return;
  }
  const { message } = entry;
  const speaker = message.role === "user" ? terminal.green(titleOf(message)) : terminal.bold(titleOf(message));
  const by = entry.by === undefined ? "" : `  by ${printable(entry.by)}`;
  terminal.line(`${speaker}  ${terminal.dim(`${entry.timestamp}  ${printable(entry.id, 512)}${by}`)}`);
  if (answer !== null) terminal.line(terminal.dim(describeAnswer(answer)));
  const text = printableText(textOf(message.content));
  if (text !== "") terminal.line(text);
  for (const part of partsOf(message.content)) {
    if (part.type !== "image" && part.type !== "file") continue;
    const name = part.name === undefined ? "" : ` ${printable(part.name)}`;
    const blob = "blob" in part ? `, ${printable(part.blob)}` : "";
    const about = `${printable(part.mediaType)}, ${attachmentBytes(part)} bytes${blob}`;
    terminal.line(terminal.dim(`[${part.type}${name}: ${about}]`));
  }
  if (message.role !== "assistant") return;
  for (const { name, arguments: given } of message.toolCalls ?? []) {
    terminal.line(terminal.dim(`→ ${printable(name)} ${printable(given, ARGUMENTS_CHARACTERS_MAX)}`));
  }
}

function titleOf(message: Message): string {
  const agent = message.agent === undefined ? "" : ` ${printable(message.agent)}`;
  if (message.role !== "tool") return `${message.role}${agent}`;
  return `${message.isError === true ? "tool, failed" : "tool"} ${printable(message.name)}`;
}

/** Who approved or denied a call, and why. */
function describeAnswer({ decision, by, note, timestamp }: EntryOf<"approval">): string {
  const { approved, reason } = decision as { readonly approved?: unknown; readonly reason?: unknown };
  const who = by === undefined ? "" : ` by ${printable(by)}`;
  const why = [reason, note].flatMap((text) => (typeof text === "string" && text !== "" ? [printable(text, 500)] : []));
  return [`${approved === true ? "approved" : "denied"}${who} ${timestamp}`, ...why].join(": ");
}
