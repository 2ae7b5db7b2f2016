/** Quotes an untrusted text: its Markdown still renders, but cannot affect anything outside of the quotation. */
export function quoteMarkdown(text: string): string {
  return containMarkdown(text)
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n");
}

/** The text in a code fence that is longer than any run of backticks in it, so that the text cannot close it. */
export function fence(text: string, language: string): string {
  const marks = "`".repeat(Math.max(2, longestRun(text)) + 1);
  return `${marks}${language}\n${text.replace(/\n$/, "")}\n${marks}`;
}

/** The text on one line, with all Markdown characters escaped. */
export function plainMarkdown(text: string): string {
  return text
    .replace(/\s+/g, " ")
    .trim()
    .replace(/[\\`*_{}[\]()#+!|~<>&$-]/g, "\\$&");
}

const BACKTICK = 0x60;

/** The opening line of a code fence: its marks and the info string. */
export const FENCE: RegExp = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;

/** Whether a line closes the fence that `opening` opened. */
export function closesFence(line: string, opening: string): boolean {
  const marks = line.trim();
  return marks.length >= opening.length && marks === (opening[0] as string).repeat(marks.length);
}

/** The lines of a text with its code fences rewritten by `fence`, and without HTML, link definitions and images outside. */
function containMarkdown(text: string): string[] {
  const lines: string[] = [];
  let code: { readonly opening: string; readonly language: string; readonly lines: string[] } | null = null;
  const endCode = (): void => {
    if (code !== null) for (const line of fence(code.lines.join("\n"), code.language).split("\n")) lines.push(line);
    code = null;
  };
  for (const line of text.split("\n")) {
    if (code !== null) {
      if (closesFence(line, (code as { opening: string }).opening)) endCode();
      else (code as { lines: string[] }).lines.push(line);
      continue;
    }
    const [, opening, info = ""] = FENCE.exec(line) ?? [];
    if (opening === undefined) lines.push(containLine(line));
    else code = { opening, language: /^\s*([\w+#.-]{0,40})/.exec(info)?.[1] ?? "", lines: [] };
  }
  endCode();
  return lines;
}

/** Keeps inline code and contains the rest. Other backticks are escaped, so a Markdown parser finds the same code spans. */
function containLine(line: string): string {
  const codes = /(?<!`)(`{1,8})(?!`)([^`]{1,2000})\1(?!`)/g;
  let contained = "";
  let end = 0;
  for (const match of line.matchAll(codes)) {
    contained += containProse(line.slice(end, match.index)) + match[0];
    end = match.index + match[0].length;
  }
  return contained + containProse(line.slice(end));
}

/**
 * Escapes backticks and tags, images (they would tell their server who reads this), link definitions (they would affect other
 * messages) and links to other targets than web and mail. Backslashes before an escaped character are doubled, so that they do
 * not escape our escape; so are those at the end, where a backtick may follow.
 */
function containProse(text: string): string {
  const marks = /(?<!\\)(\\*)(`|<|!(?=\[)|\](?=:)|\]\((?!https?:\/\/|mailto:)|$)/gi;
  return text.replace(marks, (_, backslashes: string, mark: string) => {
    const harmless = mark === "](" ? "]\\(" : mark === "" ? "" : `\\${mark}`;
    return `${backslashes}${backslashes}${harmless}`;
  });
}

function longestRun(text: string): number {
  let [longest, run] = [0, 0];
  for (let i = 0; i < text.length; i++) {
    run = text.charCodeAt(i) === BACKTICK ? run + 1 : 0;
    if (run > longest) longest = run;
  }
  return longest;
}
