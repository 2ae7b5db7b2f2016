/** A text of someone else's as a quotation, in which its own Markdown still reads as such but reaches no further. */
export function quoteMarkdown(text: string): string {
  return containMarkdown(text)
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n");
}

/** A text between fences that it cannot close. */
export function fence(text: string, language: string): string {
  const marks = "`".repeat(Math.max(2, longestRun(text)) + 1);
  return `${marks}${language}\n${text.replace(/\n$/, "")}\n${marks}`;
}

/** A text on one line, each character of which means itself. */
export function plainMarkdown(text: string): string {
  return text
    .replace(/\s+/g, " ")
    .trim()
    .replace(/[\\`*_{}[\]()#+!|~<>&$-]/g, "\\$&");
}

const BACKTICK = 0x60;

/** Where a fence begins: what it is made of, and what follows it. */
export const FENCE: RegExp = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;

/** Whether a line ends what `opening` began. */
export function closesFence(line: string, opening: string): boolean {
  const marks = line.trim();
  return marks.length >= opening.length && marks === (opening[0] as string).repeat(marks.length);
}

/** The lines of a text: its fenced code in fences of ours, and outside of them no HTML, no definitions and no images. */
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

/** The backticks that stay are those of the code that was found here, so a reader of Markdown finds the same. */
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
 * Takes their meaning from backticks and tags, from pictures (which tell their server who reads this), from definitions
 * (which would reach other messages) and from links to anywhere but the web. Backslashes before them are doubled, since
 * two of them mean one that is no escape; so are those at the end, where a backtick may follow.
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
