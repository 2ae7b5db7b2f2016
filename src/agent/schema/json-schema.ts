import { JSON_DEPTH_MAX } from "../../internal/json.ts";
import {
  checkNumber,
  checkSize,
  checkText,
  findRepeated,
  matchesPattern,
  missedChoice,
  missedType,
  stepsToRead,
} from "./json-schema-keywords.ts";
import {
  listNames,
  type Position,
  type Problem,
  PROBLEMS_MAX,
  showPosition,
  showProblems,
  showValue,
  unionProblems,
} from "./json-schema-problem.ts";
import { isKeyed, resolveReference } from "./json-schema-reference.ts";
import { runWithin, TookTooLong } from "./run-within.ts";

/**
 * The most steps of one check: applying a schema to a value, comparing a name or a choice, reading 64 characters.
 * Nested unions over a deep value could otherwise take exponential time.
 */
const STEPS_MAX = 1_000_000;
/** The time limit of a check whose schema has patterns: a single match can take exponential time. */
const PATTERNS_MS_MAX = 500;
/** How many matching branches are named for a value that should match exactly one. */
const FORMS_SHOWN = 5;
/** How deeply schemas may be nested in a check; each level takes at most four calls. */
const NESTED_MAX = 1000;

type Keyed = Readonly<Record<string, unknown>>;

/** The references that were followed at one position of the value, to detect a cycle. */
interface Trail {
  readonly target: unknown;
  readonly before: Trail | null;
}

/**
 * Checks a value against a JSON Schema. Returns a sentence with at most five problems that a model can act on, or null.
 *
 * Supports the subset listed in docs/decisions/010; other keywords and `format` are ignored. Neither value nor schema
 * can make it overflow the stack or run forever: steps are counted, and patterns have a time limit.
 */
export function checkJsonSchema(schema: unknown, value: unknown, name = "arguments"): string | null {
  const hazard = findHazard(value, name);
  if (hazard !== null) return hazard;
  const problems: Problem[] = [];
  const check = (): void => {
    new SchemaCheck(schema).apply(schema, value, { parent: null, key: name }, problems, null);
  };
  try {
    if (mayHavePatterns(schema)) runWithin(PATTERNS_MS_MAX, check);
    else check();
  } catch (error) {
    if (error instanceof TookTooLong) {
      return `${name} could not be checked: the patterns of the schema took longer than ${PATTERNS_MS_MAX} ms; send shorter texts.`;
    }
    if (!(error instanceof TooIntricate)) throw error;
    return `${name} is too large or too deep to be checked against its schema; send a smaller, flatter value.`;
  }
  return problems.length === 0 ? null : showProblems(problems);
}

const withPatterns = new WeakMap<object, boolean>();

/** Whether a schema has patterns; may return true for a name or value that only looks like one. */
function mayHavePatterns(schema: unknown): boolean {
  if (typeof schema !== "object" || schema === null) return false;
  const known = withPatterns.get(schema);
  if (known !== undefined) return known;
  let found = false;
  const seen = new Set<object>([schema]);
  for (const here of seen) {
    found ||= Object.hasOwn(here, "pattern") || Object.hasOwn(here, "patternProperties");
    if (found) break;
    for (const child of Object.values(here)) if (typeof child === "object" && child !== null) seen.add(child);
  }
  withPatterns.set(schema, found);
  return found;
}

/**
 * Describes why a value is unsafe for any tool (nesting that overflows recursive readers, or a key that changes prototypes); null if it is
 * safe.
 */
export function findHazard(value: unknown, name = "arguments"): string | null {
  const waiting: { value: unknown; at: Position; depth: number }[] = [];
  waiting.push({ value, at: { parent: null, key: name }, depth: 0 });
  for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
    const { value: here, at, depth } = item;
    if (typeof here !== "object" || here === null) continue;
    if (depth >= JSON_DEPTH_MAX) return `${name} nests deeper than ${JSON_DEPTH_MAX} levels; send a flatter value.`;
    if (Array.isArray(here)) {
      for (const [key, child] of here.entries()) {
        if (typeof child === "object") waiting.push({ value: child, at: { parent: at, key }, depth: depth + 1 });
      }
      continue;
    }
    for (const key of Object.keys(here)) {
      if (key === "__proto__") return `${showPosition({ parent: at, key })} is a key that is not allowed.`;
      const child = (here as Keyed)[key];
      if (typeof child === "object") waiting.push({ value: child, at: { parent: at, key }, depth: depth + 1 });
    }
  }
  return null;
}

class TooIntricate extends Error {}

class SchemaCheck {
  readonly #root: unknown;
  readonly #references = new Map<string, unknown>();
  /** Cached per schema: the steps for comparing a value with its choices, and the text of a value. */
  readonly #choiceSteps = new Map<unknown, number>();
  readonly #shown = new Map<unknown, string>();
  #stepsLeft = STEPS_MAX;
  #nested = 0;

  constructor(root: unknown) {
    this.#root = root;
  }

  apply(schema: unknown, value: unknown, at: Position, into: Problem[], trail: Trail | null): void {
    this.#spend(1);
    if (into.length >= PROBLEMS_MAX) return;
    if (this.#nested >= NESTED_MAX) throw new TooIntricate();
    this.#nested += 1;
    this.#applyKeywords(schema, value, at, into, trail);
    this.#nested -= 1;
  }

  #applyKeywords(schema: unknown, value: unknown, at: Position, into: Problem[], trail: Trail | null): void {
    const add = (says: string): void => {
      if (into.length < PROBLEMS_MAX) into.push({ at, says });
    };
    if (schema === false) add("is not allowed");
    if (!isKeyed(schema)) return;
    const expected = missedType(schema["type"], value);
    if (expected !== null) {
      into.push({ at, says: `must be ${expected}, got ${this.#show(value)}`, expected });
      return;
    }
    this.#spend(this.#stepsToChoose(schema));
    const choice = missedChoice(schema, value);
    if (choice !== null) {
      into.push({ at, says: `must be ${choice}, got ${this.#show(value)}`, choice: true });
      return;
    }
    if (typeof value === "number") checkNumber(schema, value, add);
    else if (typeof value === "string") checkText(schema, value, add, (steps) => this.#spend(steps));
    else if (Array.isArray(value)) this.#applyToArray(schema, value, at, into, add);
    else if (isKeyed(value)) this.#applyToObject(schema, value, at, into, add);
    this.#applyReference(schema, value, at, into, trail);
    this.#applyUnions(schema, value, at, into, trail);
  }

  #applyToArray(
    schema: Keyed,
    value: readonly unknown[],
    at: Position,
    into: Problem[],
    add: (says: string) => void,
  ): void {
    checkSize(value.length, [schema["minItems"], schema["maxItems"]], "item", `got ${value.length}`, add);
    if (schema["uniqueItems"] === true) {
      this.#spend(stepsToRead(value));
      const repeated = findRepeated(value);
      if (repeated >= 0) add(`must have no item twice, but repeats ${showValue(value[repeated])} at [${repeated}]`);
    }
    const listed = Array.isArray(schema["items"]) ? schema["items"] : schema["prefixItems"];
    const first: readonly unknown[] = Array.isArray(listed) ? listed : [];
    const rest = Array.isArray(schema["items"]) ? schema["additionalItems"] : schema["items"];
    const end = rest === undefined || rest === true ? Math.min(first.length, value.length) : value.length;
    for (let key = 0; key < end && into.length < PROBLEMS_MAX; key++) {
      this.apply(key < first.length ? first[key] : rest, value[key], { parent: at, key }, into, null);
    }
  }

  #applyToObject(schema: Keyed, value: Keyed, at: Position, into: Problem[], add: (says: string) => void): void {
    const keys = Object.keys(value);
    this.#spend(keys.length);
    const sizes = [schema["minProperties"], schema["maxProperties"]] as const;
    checkSize(keys.length, sizes, "property", `got ${keys.length}`, add);
    const { required, additionalProperties: rest } = schema;
    if (Array.isArray(required)) this.#spend(required.length);
    for (const key of Array.isArray(required) ? required : []) {
      if (into.length >= PROBLEMS_MAX) return;
      if (typeof key !== "string" || Object.hasOwn(value, key)) continue;
      into.push({ at: { parent: at, key }, says: "is required but missing" });
    }
    const properties = isKeyed(schema["properties"]) ? schema["properties"] : {};
    const patterns = isKeyed(schema["patternProperties"]) ? Object.entries(schema["patternProperties"]) : [];
    this.#spend(patterns.length);
    for (const key of keys) {
      if (into.length >= PROBLEMS_MAX) return;
      const position = { parent: at, key };
      const matching = patterns.filter(([pattern]) => matchesPattern(pattern, key));
      this.#spend(patterns.length);
      for (const [, child] of matching) this.apply(child, value[key], position, into, null);
      if (Object.hasOwn(properties, key)) this.apply(properties[key], value[key], position, into, null);
      else if (rest === false && matching.length === 0)
        into.push({ at: position, says: this.#unknownProperty(properties) });
      else if (rest !== undefined && matching.length === 0) this.apply(rest, value[key], position, into, null);
    }
  }

  #applyReference(schema: Keyed, value: unknown, at: Position, into: Problem[], trail: Trail | null): void {
    const reference = schema["$ref"];
    if (typeof reference !== "string") return;
    if (!this.#references.has(reference)) {
      this.#references.set(reference, resolveReference(this.#root, reference));
    }
    const target = this.#references.get(reference);
    // A reference cycle that does not descend into the value adds no constraint.
    for (let step = trail; step !== null; step = step.before) {
      this.#spend(1);
      if (step.target === target) return;
    }
    this.apply(target, value, at, into, { target, before: trail });
  }

  #applyUnions(schema: Keyed, value: unknown, at: Position, into: Problem[], trail: Trail | null): void {
    const { allOf, anyOf, oneOf, not } = schema;
    const problemsBy = (branch: unknown): Problem[] => {
      const problems: Problem[] = [];
      this.apply(branch, value, at, problems, trail);
      return problems;
    };
    const add = (...problems: readonly Problem[]): void => {
      into.push(...problems.slice(0, PROBLEMS_MAX - into.length));
    };
    for (const branch of Array.isArray(allOf) ? allOf : []) this.apply(branch, value, at, into, trail);
    if (Array.isArray(anyOf)) {
      const branches = untilEmpty(anyOf, problemsBy);
      if (branches !== null) add(...unionProblems(at, value, branches));
    }
    if (Array.isArray(oneOf)) {
      const branches = oneOf.map(problemsBy);
      const fitting = branches.flatMap((problems, index) => (problems.length === 0 ? [index + 1] : []));
      if (fitting.length === 0) add(...unionProblems(at, value, branches));
      else if (fitting.length > 1) {
        const numbers = fitting.slice(0, FORMS_SHOWN).join(" and ");
        const more = fitting.length > FORMS_SHOWN ? ` and ${fitting.length - FORMS_SHOWN} more` : "";
        add({ at, says: `must match exactly one of ${oneOf.length} forms, but matches number ${numbers}${more}` });
      }
    }
    if (not !== undefined && problemsBy(not).length === 0) {
      add({ at, says: `must not be what the schema excludes, got ${this.#show(value)}` });
    }
  }

  /** Formats a value. The keys of a large object are read once, however many branches refuse it. */
  #show(value: unknown): string {
    if (typeof value !== "object" || value === null) return showValue(value);
    const known = this.#shown.get(value) ?? showValue(value);
    this.#shown.set(value, known);
    return known;
  }

  #stepsToChoose(schema: Keyed): number {
    const { const: only, enum: choices } = schema;
    if (only === undefined && choices === undefined) return 0;
    const known = this.#choiceSteps.get(schema) ?? stepsToRead([only ?? null, choices ?? null]);
    this.#choiceSteps.set(schema, known);
    return known;
  }

  #unknownProperty(properties: Keyed): string {
    const known = Object.keys(properties);
    this.#spend(known.length);
    return known.length === 0 ? "is not a known property" : `is not a known property; known are ${listNames(known)}`;
  }

  #spend(steps: number): void {
    this.#stepsLeft -= steps;
    if (this.#stepsLeft < 0) throw new TooIntricate();
  }
}

/** The problems of every branch; null as soon as one has none. */
function untilEmpty(branches: readonly unknown[], problemsBy: (branch: unknown) => Problem[]): Problem[][] | null {
  const all: Problem[][] = [];
  for (const branch of branches) {
    const problems = problemsBy(branch);
    if (problems.length === 0) return null;
    all.push(problems);
  }
  return all;
}
