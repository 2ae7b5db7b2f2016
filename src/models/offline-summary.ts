import { type Message, textOf } from "../session/message.ts";

const SENTENCES_MAX = 12;
const SENTENCE_CHARACTERS_MAX = 160;

/** The summary that a request asks for by quoting a conversation, or by the word; null when it asks for something else. */
export function summaryFor(messages: readonly Message[], question: string): string | null {
  const conversation = /^<conversation>\n(?<text>[\s\S]*)\n<\/conversation>/.exec(question)?.groups?.text;
  if (conversation !== undefined) return summaryOf(conversation, question);
  if (!/\bsummari[sz]e\b|\b(?:write|give|make)\b[^.\n]*\bsummary\b/i.test(question)) return null;
  const before = messages.slice(
    0,
    messages.findLastIndex(({ role }) => role === "user"),
  );
  const said = before.flatMap(({ role, content }) => {
    const text = textOf(content);
    return role === "system" || text === "" ? [] : [`[${role}] ${text.replaceAll("\n\n", "\n")}`];
  });
  return said.length === 0 ? null : summaryOf(said.join("\n\n"), "");
}

/** A text on one line, and not more of it than a reader wants to see. */
export function cutLine(text: string, charactersMax: number = SENTENCE_CHARACTERS_MAX): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= charactersMax ? line : `${line.slice(0, charactersMax).replace(/[\ud800-\udbff]$/, "")}…`;
}

function summaryOf(conversation: string, question: string): string {
  const earlier = /<earlier-summary>\n(?<text>[\s\S]*)\n<\/earlier-summary>/.exec(question)?.groups?.text;
  const said = conversation.split("\n\n").filter((line) => line.startsWith("["));
  const shown = said.slice(0, SENTENCES_MAX).map((line) => `- ${cutLine(line)}`);
  const left = said.length - shown.length;
  return [
    ...(earlier === undefined ? [] : [earlier]),
    ...shown,
    ...(left > 0 ? [`- and ${left} more messages`] : []),
  ].join("\n");
}
