/**
 * A source text reduced to its code: without comments, and with each literal string replaced by a number in `strings`.
 */
export interface SourceText {
  readonly code: string;
  readonly strings: readonly string[];
}

const wordsBeforeRegex = /(?<![\w$.])(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield)$/;

/**
 * Strips what could be mistaken for code. In `code` the third string reads `"2"`, whatever its quotes were; a template
 * with substitutions keeps only their code, and a regular expression becomes `0`.
 */
export function readSourceText(text: string): SourceText {
  const strings: string[] = [];
  // For each template being read: how many braces were open when its current substitution began.
  const templates: number[] = [];
  let braces = 0;
  let code = "";
  let at = 0;

  const readTemplate = (start: number, opening: boolean): number => {
    const end = endOfTemplateText(text, start);
    if (text[end] === "$") {
      templates.push(braces);
      code += opening ? "`${" : ",";
      return end + 2;
    }
    code += opening ? `"${strings.push(text.slice(start, end)) - 1}"` : "}`";
    return end + 1;
  };

  while (at < text.length) {
    const char = text[at];
    const pair = text.slice(at, at + 2);
    if (pair === "//" || (at === 0 && pair === "#!")) {
      at = indexOrEnd(text, "\n", at);
    } else if (pair === "/*") {
      at = indexOrEnd(text, "*/", at + 2) + 2;
      code += " ";
    } else if (char === '"' || char === "'") {
      const end = endOfString(text, at);
      code += `"${strings.push(text.slice(at + 1, end)) - 1}"`;
      at = end + 1;
    } else if (char === "`") {
      at = readTemplate(at + 1, true);
    } else if (char === "}" && templates.at(-1) === braces) {
      templates.pop();
      at = readTemplate(at + 1, false);
    } else if (char === "/" && mayStartRegex(code) && endOfRegex(text, at) !== null) {
      code += "0";
      at = endOfRegex(text, at) ?? at;
    } else {
      if (char === "{") braces += 1;
      if (char === "}") braces -= 1;
      code += char;
      at += 1;
    }
  }
  return { code, strings };
}

function mayStartRegex(code: string): boolean {
  const before = code.trimEnd();
  return !/[\w$)\]"`]$/.test(before) || wordsBeforeRegex.test(before);
}

/** The position after the closing slash, or null where the line holds none: then the slash divides. */
function endOfRegex(text: string, start: number): number | null {
  const body = /\/(?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//y;
  body.lastIndex = start;
  return body.test(text) ? body.lastIndex : null;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== text[start]) at += text[at] === "\\" ? 2 : 1;
  return at;
}

function endOfTemplateText(text: string, start: number): number {
  let at = start;
  while (at < text.length && text[at] !== "`" && !text.startsWith("${", at)) at += text[at] === "\\" ? 2 : 1;
  return at;
}

function indexOrEnd(text: string, part: string, from: number): number {
  const at = text.indexOf(part, from);
  return at === -1 ? text.length : at;
}
