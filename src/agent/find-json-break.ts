/** Where a text stops being JSON. */
export interface JsonBreak {
  readonly offset: number;
  /** What could have stood there. */
  readonly expected: string;
}

type State = "value" | "first-item" | "first-key" | "key" | "colon" | "after-item" | "after-property" | "end";

const EXPECTED: Readonly<Record<State, string>> = {
  value: "a value",
  "first-item": 'a value or "]"',
  "first-key": 'a key in double quotes or "}"',
  key: "a key in double quotes",
  colon: '":"',
  "after-item": '"," or "]"',
  "after-property": '"," or "}"',
  end: "the end of the text",
};

const CLOSABLE: readonly State[] = ["first-item", "first-key", "after-item", "after-property"];

const SPACE = /[ \t\n\r]*/y;
const WORD = /true|false|null/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** Where a text stops being JSON, in steps that do not nest however deep the text does, or null when it is JSON. */
export function findJsonBreak(text: string): JsonBreak | null {
  const closers: ("]" | "}")[] = [];
  let state: State = "value";
  let offset = skip(SPACE, text, 0);
  while (state !== "end" || offset < text.length) {
    const next = step(state, text, offset, closers);
    if ("expected" in next) return next;
    state = next.state;
    offset = skip(SPACE, text, next.offset);
  }
  return null;
}

function step(
  state: State,
  text: string,
  offset: number,
  closers: ("]" | "}")[],
): JsonBreak | { readonly state: State; readonly offset: number } {
  const character = text[offset];
  if (state === "colon" && character === ":") return { state: "value", offset: offset + 1 };
  if (state === "after-item" && character === ",") return { state: "value", offset: offset + 1 };
  if (state === "after-property" && character === ",") return { state: "key", offset: offset + 1 };
  if (CLOSABLE.includes(state) && character === closers.at(-1)) {
    closers.pop();
    return { state: afterValue(closers), offset: offset + 1 };
  }
  const takesValue = state === "value" || state === "first-item";
  if (character === '"' && (takesValue || state === "key" || state === "first-key")) {
    const end = endOfText(text, offset + 1);
    if (text[end] !== '"') return { offset: end, expected: expectedInText(text, end) };
    return { state: takesValue ? afterValue(closers) : "colon", offset: end + 1 };
  }
  if (!takesValue) return { offset, expected: EXPECTED[state] };
  if (character === "{" || character === "[") {
    closers.push(character === "{" ? "}" : "]");
    return { state: character === "{" ? "first-key" : "first-item", offset: offset + 1 };
  }
  const end = Math.max(skip(WORD, text, offset), skip(NUMBER, text, offset));
  return end === offset ? { offset, expected: EXPECTED[state] } : { state: afterValue(closers), offset: end };
}

function afterValue(closers: readonly ("]" | "}")[]): State {
  if (closers.length === 0) return "end";
  return closers.at(-1) === "}" ? "after-property" : "after-item";
}

/** Where a text's inside ends: at its closing quote, or at what may not stand in it. */
function endOfText(text: string, start: number): number {
  let offset = start;
  // One character at a time, because an expression that repeats this often runs out of room on a long text.
  while (offset < text.length) {
    const character = text[offset]!;
    const next = character === "\\" ? skip(ESCAPE, text, offset) : offset + 1;
    if (character === '"' || character < " " || next === offset) return offset;
    offset = next;
  }
  return offset;
}

function expectedInText(text: string, offset: number): string {
  if (text[offset] === "\\") return 'an escape such as \\" or \\n';
  return offset < text.length ? "\\n or another escape in place of a raw control character" : 'a closing "';
}

function skip(expression: RegExp, text: string, offset: number): number {
  expression.lastIndex = offset;
  return expression.test(text) ? expression.lastIndex : offset;
}
