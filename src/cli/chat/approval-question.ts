import { callParts, reachText, shownText } from "../../agent/approval-text.ts";
import type { Approval } from "../../index.ts";
import { printable } from "../terminal.ts";

/** Longer texts stand above the question. */
const INLINE_CHARACTERS_MAX = 100;
/** Of what is written to a file, so much is shown; of a command, all of it. */
const CONTENT_CHARACTERS_SHOWN = 1000;

/** What a person is asked about a call, and what they must read before, where that is more than fits into a question. */
export function approvalQuestion(approval: Approval): { readonly text: string | null; readonly question: string } {
  const { kind, text, path, rest } = callParts(approval);
  const name = printable(approval.name);
  const fits =
    path === null && rest === null && text.length <= INLINE_CHARACTERS_MAX && !shownText(text).includes("\n");
  const about = path ?? (fits ? text : null);
  const reach = approval.reach === null ? `: ${reachText(approval)}` : ` ${reachText(approval)}`;
  const question = `Allow ${name}${about === null ? "" : ` \`${oneLine(about)}\``}${reach}?`;
  if (fits) return { text: null, question };
  const isCut = (kind === "content" || kind === "edit") && text.length > CONTENT_CHARACTERS_SHOWN;
  const shown = isCut ? text.slice(0, CONTENT_CHARACTERS_SHOWN) : text;
  const lines = [
    ...shownText(shown).split("\n"),
    ...(isCut ? [`… ${text.length - shown.length} more characters`] : []),
    ...(rest === null ? [] : ["with", ...shownText(rest).split("\n")]),
  ];
  // The line at the side keeps a text from looking like the question, or like an answer of the chat.
  return { text: [`${name}:`, ...lines.map((line) => `│ ${line}`)].join("\n"), question };
}

function oneLine(text: string): string {
  return shownText(text).replaceAll("\n", "[U+000A]").replaceAll("\t", "[U+0009]");
}
