import { callParts, reachText, shownText } from "../../agent/approval-text.ts";
import type { Approval } from "../../index.ts";
import { printable } from "../terminal.ts";

/** Longer texts are printed above the question. */
const INLINE_CHARACTERS_MAX = 100;
/** How much of a text that a call would write to a file is shown. Commands are always shown whole. */
const CONTENT_CHARACTERS_SHOWN = 1000;

/**
 * The question that a person is asked about a call, and the text to print above it if the call does not fit into the
 * question.
 */
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
  // The line at the left keeps a text from looking like the question, or like output of the chat.
  return { text: [`${name}:`, ...lines.map((line) => `│ ${line}`)].join("\n"), question };
}

function oneLine(text: string): string {
  return shownText(text).replaceAll("\n", "[U+000A]").replaceAll("\t", "[U+0009]");
}
