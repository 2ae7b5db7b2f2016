import { type Message, textOf } from "../session/message.ts";

const SENTENCES_MAX = 12;
const SENTENCE_CHARACTERS_MAX = 160;
/** Maximum length of a message that asks for a summary; a longer one is treated as pasted text. */
const QUESTION_CHARACTERS_MAX = 200_000;

/** The summary, if the request quotes a conversation or asks for a summary in words; else null. */
export function summaryFor(messages: readonly Message[], question: string): string | null {
  const conversation = /^<conversation>\n(?<text>[\s\S]*)\n<\/conversation>/.exec(question)?.groups?.text;
  if (conversation !== undefined) return summaryOf(conversation, question);
  if (question.length > QUESTION_CHARACTERS_MAX || !asksForSummary(question)) return null;
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

/** A text on one line, cut to a maximum length. */
export function cutLine(text: string, charactersMax: number = SENTENCE_CHARACTERS_MAX): string {
  // Only the beginning of a long text is normalized, to save time.
  const line = text
    .slice(0, charactersMax * 20)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= charactersMax && text.length <= charactersMax * 20
    ? line
    : `${line.slice(0, charactersMax).replace(/[\ud800-\udbff]$/, "")}…`;
}

function summaryOf(conversation: string, question: string): string {
  const earlier = textBetween(question, "<earlier-summary>\n", "\n</earlier-summary>");
  const said = conversation.split("\n\n").filter((line) => line.startsWith("["));
  const shown = said.slice(0, SENTENCES_MAX).map((line) => `- ${cutLine(line)}`);
  const left = said.length - shown.length;
  return [
    ...(earlier === undefined ? [] : [earlier]),
    ...shown,
    ...(left > 0 ? [`- and ${left} more messages`] : []),
  ].join("\n");
}

/** Whether a text contains "summarize", or asks in one sentence to write, give or make a summary. */
function asksForSummary(text: string): boolean {
  if (/\bsummari[sz]e\b/i.test(text)) return true;
  return text.split(/[.\n]/).some((sentence) => {
    const verb = sentence.search(/\b(?:write|give|make)\b/i);
    return verb >= 0 && /\bsummary\b/i.test(sentence.slice(verb));
  });
}

/** The text between the first opening and the last closing tag; undefined if one is missing. */
function textBetween(text: string, opening: string, closing: string): string | undefined {
  const start = text.indexOf(opening);
  const end = text.lastIndexOf(closing);
  return start < 0 || end < start + opening.length ? undefined : text.slice(start + opening.length, end);
}
