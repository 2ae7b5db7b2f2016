/** A position in a value: a linked list of keys, converted to text only for a problem. */
export interface Position {
  readonly parent: Position | null;
  readonly key: string | number;
}

/** One way in which a value violates its schema. */
export interface Problem {
  readonly at: Position;
  /** The part of the sentence after the path. */
  readonly says: string;
  /** The expected kinds, if the value is of another kind. */
  readonly expected?: string;
  /** Whether the value is not one of a fixed list; such problems tell the branches of a union apart. */
  readonly choice?: boolean;
  /** The first problem of some branches of a union that the value does not match; formatted only when it is shown. */
  readonly forms?: readonly Problem[];
}

/** The most problems in a sentence. */
export const PROBLEMS_MAX = 5;

const PLACE_CHARACTERS_MAX = 120;
const KEY_CHARACTERS_SHOWN = 40;
const TEXT_CHARACTERS_SHOWN = 60;
const KEYS_SHOWN = 5;

/** The path as a program would write it: `arguments.items[2].count`. */
export function showPosition(position: Position): string {
  const steps: string[] = [];
  let length = 0;
  let step: Position = position;
  for (; step.parent !== null; step = step.parent) {
    if (length > PLACE_CHARACTERS_MAX) continue;
    const shown = showStep(step.key);
    length += shown.length;
    steps.push(length > PLACE_CHARACTERS_MAX ? "…" : shown);
  }
  return `${step.key}${steps.reverse().join("")}`;
}

/** Formats problems as one sentence. */
export function showProblems(problems: readonly Problem[]): string {
  return `${problems.map((problem) => `${showProblem(problem)}${showForms(problem)}`).join("; ")}.`;
}

/** Formats a value for a sentence, in at most one line. */
export function showValue(value: unknown): string {
  if (typeof value === "string") return showText(value, TEXT_CHARACTERS_SHOWN);
  if (value === undefined) return "nothing";
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return value.length === 1 ? "an array of 1 item" : `an array of ${value.length} items`;
  const keys = Object.keys(value);
  return keys.length === 0 ? "an empty object" : `an object with ${listNames(keys)}`;
}

/** The first few names of a list, quoted if they are unusual. */
export function listNames(names: readonly string[]): string {
  const shown = names.slice(0, KEYS_SHOWN).map((name) => (isPlain(name) ? name : showText(name, KEY_CHARACTERS_SHOWN)));
  return `${shown.join(", ")}${names.length > KEYS_SHOWN ? ` and ${names.length - KEYS_SHOWN} more` : ""}`;
}

/** Problems of a value that matches none of several branches, as brief as possible. */
export function unionProblems(at: Position, value: unknown, branches: readonly (readonly Problem[])[]): Problem[] {
  const close = branches.filter((problems) => !problems.some((problem) => isOtherBranch(problem, at)));
  // A single branch of the right kind is probably the intended one: its problems are what must be fixed.
  if (close.length === 1) return [...(close[0] ?? [])];
  const kinds = branches.map((problems) => problems.find((problem) => problem.at === at)?.expected);
  if (kinds.every((kind) => kind !== undefined)) {
    const expected = [...new Set(kinds)].join(" or ");
    return [{ at, says: `must be ${expected}, got ${showValue(value)}`, expected }];
  }
  const forms = (close.length > 0 ? close : branches).slice(0, 3).flatMap((problems) => problems.slice(0, 1));
  return [{ at, says: `must match one of ${branches.length} forms`, forms }];
}

function showProblem({ at, says }: Problem): string {
  return `${showPosition(at)} ${says}`;
}

function showForms({ forms = [] }: Problem): string {
  if (forms.length === 0) return "";
  return `, which say: ${forms.map((problem, index) => `(${index + 1}) ${showProblem(problem)}`).join(", ")}`;
}

function isOtherBranch({ at: position, expected, choice }: Problem, at: Position): boolean {
  return (
    (expected !== undefined && position === at) || (choice === true && (position === at || position.parent === at))
  );
}

function showStep(key: string | number): string {
  if (typeof key === "number") return `[${key}]`;
  return isPlain(key) ? `.${key}` : `[${showText(key, KEY_CHARACTERS_SHOWN)}]`;
}

function isPlain(key: string): boolean {
  return key.length <= KEY_CHARACTERS_SHOWN && /^[A-Za-z_$][\w$]*$/.test(key);
}

function showText(text: string, charactersMax: number): string {
  const cut = text.length > charactersMax;
  return JSON.stringify(cut ? `${text.slice(0, charactersMax).replace(/[\ud800-\udbff]$/, "")}…` : text);
}
