import { SessionError, show } from "../errors.ts";
import { isTimestamp } from "./header.ts";
import { isName } from "../id.ts";
import { COST_MAX, MODEL_CHARACTERS_MAX, NAME_CHARACTERS_MAX, REASON_CHARACTERS_MAX, TOKENS_MAX } from "../limits.ts";
import { USAGE_FIELDS } from "../usage.ts";

type Fields = { readonly [key: string]: unknown };
type Check = (value: unknown) => string | null;
/** How each field is checked; every check but an optional one refuses a field that is missing. */
type Rules = Readonly<Record<string, Check>>;

const text: Check = (value) => (typeof value === "string" ? null : "is not a text");
const filled: Check = (value) => (typeof value === "string" && value !== "" ? null : "is not a text, or empty");
const flag: Check = (value) => (typeof value === "boolean" ? null : "is not true or false");
const count: Check = (value) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? null : "is not a whole number of 0 or more";
const amount: Check = (value) =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? null : "is not a number of 0 or more";
const time: Check = (value) => (isTimestamp(value) ? null : "is not an ISO-8601 time with milliseconds, in UTC");
const object: Check = (value) => (isFields(value) ? null : "is not an object");
const oneOf =
  (...words: readonly string[]): Check =>
  (value) =>
    words.includes(value as string) ? null : `is not one of ${words.join(", ")}`;
const listOf =
  (item: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every((each) => item(each) === null) ? null : "is not a list of texts";
const nullOr =
  (check: Check): Check =>
  (value) =>
    value === null ? null : check(value);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined ? null : check(value);
const name: Check = (value) =>
  isName(value) ? null : "is not an id of 1 to 512 characters without control characters";

const usage: Check = (value) => {
  if (!isFields(value)) return "is not an object";
  for (const [index, field] of USAGE_FIELDS.entries()) {
    if (value[field] === undefined ? index < 3 : amount(value[field]) !== null) return `has no valid ${field}`;
  }
  return null;
};

const content: Check = (value) => {
  if (typeof value === "string") return null;
  if (!Array.isArray(value)) return "is neither a text nor a list of parts";
  for (const [index, part] of value.entries()) {
    const problem = partProblem(part);
    if (problem !== null) return `has a part ${index} that ${problem}`;
  }
  return null;
};

function partProblem(part: unknown): string | null {
  if (!isFields(part)) return "is not an object";
  if (part.type === "text" || part.type === "thinking") return typeof part.text === "string" ? null : "has no text";
  if (part.type !== "image" && part.type !== "file") return `has the unknown type ${show(part.type)}`;
  return typeof part.mediaType === "string" && typeof part.data === "string" ? null : "has no mediaType or no data";
}

const toolCalls: Check = (value) => {
  if (!Array.isArray(value)) return "is not a list";
  const whole = value.every(
    (call) =>
      isFields(call) && filled(call.id) === null && filled(call.name) === null && typeof call.arguments === "string",
  );
  return whole ? null : "has a call without id, name, or arguments as text";
};

const questions: Check = (value) => {
  if (!Array.isArray(value)) return "is not a list";
  const whole = value.every(
    (asked) => isFields(asked) && filled(asked.callId) === null && name(asked.question) === null,
  );
  return whole ? null : "has one without a callId or the entry that asks";
};

const extras: Rules = { agent: optional(text), metadata: optional(object) };
const messageRules: Readonly<Record<string, Rules>> = {
  system: { ...extras, content },
  user: { ...extras, content },
  assistant: {
    ...extras,
    content: nullOr(content),
    toolCalls: optional(toolCalls),
    provider: optional(text),
    model: optional(text),
    usage: optional(usage),
    cost: optional(amount),
    stopReason: optional(oneOf("stop", "length", "tool_calls", "content_filter", "aborted", "error")),
  },
  tool: { ...extras, content, toolCallId: filled, name: text, isError: optional(flag) },
};

const message: Check = (value) => {
  if (!isFields(value)) return "is not an object";
  const role = String(value.role);
  const rules = Object.hasOwn(messageRules, role) ? messageRules[role] : undefined;
  if (rules === undefined) return `has the role ${show(value.role)}, which is not one of system, user, assistant, tool`;
  const problem = fieldProblem(value, rules);
  return problem === null ? null : `is not valid: ${problem}`;
};

const RULES: Readonly<Record<string, Rules>> = {
  message: { message },
  compaction: {
    summary: filled,
    firstKeptEntryId: name,
    tokensBefore: amount,
    usage: optional(usage),
    cost: optional(amount),
  },
  branch_summary: {
    summary: text,
    fromId: nullOr(name),
    usage: optional(usage),
    cost: optional(amount),
  },
  custom_message: { customType: filled, content, display: flag },
  thinking_level_change: { thinkingLevel: filled },
  model_change: { provider: filled, modelId: filled },
  variables: {
    set: object,
    unset: listOf(text),
    systemPrompt: optional(nullOr(text)),
    activeTools: optional(listOf(text)),
    activeSkills: optional(listOf(text)),
  },
  custom: { customType: filled },
  erased: { was: filled, reason: optional(text) },
  leaf: { targetId: nullOr(name) },
  label: { targetId: name, label: nullOr(filled) },
  session_info: { name: text },
  status: { status: oneOf("active", "suspended", "closed", "expired"), reason: optional(text) },
  run: {
    runId: name,
    phase: oneOf("started", "finished", "failed", "cancelled"),
    usage: optional(usage),
    truncated: optional(flag),
    sandbox: optional(object),
    claim: optional(count),
  },
  run_request: {
    runId: name,
    agent: optional(name),
    group: optional(name),
    model: optional(filled),
    options: optional(object),
    input: content,
    notBefore: optional(time),
    deadline: optional(time),
  },
  run_parked: {
    runId: name,
    questions,
    expiresAt: optional(time),
    host: optional(text),
  },
  cancel: { runId: name, reason: optional(text) },
  approval: {
    runId: name,
    callId: filled,
    question: optional(name),
    note: optional(text),
    asked: optional(object),
  },
  queued: { runId: name, kind: oneOf("steer", "followUp"), content },
  compaction_undone: { targetId: name },
  trailer: { closedAt: time, entryCount: count, usage },
  effect: { runId: name, callId: filled },
  prune: { targetId: name },
};

/**
 * What is wrong with an entry's own fields, or null. Fields that the type does not name are let through, as a later
 * version may have added them.
 */
export function bodyProblem(body: Fields): string | null {
  if (typeof body.type !== "string" || body.type === "") return "it has no type";
  const rules = Object.hasOwn(RULES, body.type) ? RULES[body.type] : undefined;
  return rules === undefined ? null : fieldProblem(body, rules);
}

type Limits = Readonly<Record<string, number>>;

/** The most characters of texts that are shown or stored with other entries as well, by type and field. */
const CHARACTERS_MAX: Readonly<Record<string, Limits>> = {
  message: { provider: MODEL_CHARACTERS_MAX, model: MODEL_CHARACTERS_MAX },
  model_change: { provider: MODEL_CHARACTERS_MAX, modelId: MODEL_CHARACTERS_MAX },
  thinking_level_change: { thinkingLevel: MODEL_CHARACTERS_MAX },
  label: { label: NAME_CHARACTERS_MAX },
  session_info: { name: NAME_CHARACTERS_MAX },
  status: { reason: REASON_CHARACTERS_MAX },
  cancel: { reason: REASON_CHARACTERS_MAX },
  approval: { note: REASON_CHARACTERS_MAX },
  run_request: { model: MODEL_CHARACTERS_MAX },
};

/**
 * What a new entry says too much of, or null: it spent more than any answer of a model comes to, or has a name, a label or
 * a reason without an end. A stored log stays readable with whatever it says.
 */
export function excessProblem(body: { readonly type: string; readonly message?: unknown }): string | null {
  const said: unknown = body.type === "message" ? body.message : body;
  if (!isFields(said)) return null;
  const limits = Object.hasOwn(CHARACTERS_MAX, body.type) ? (CHARACTERS_MAX[body.type] as Limits) : {};
  for (const field in limits) {
    const value = said[field];
    const charactersMax = limits[field] as number;
    if (typeof value === "string" && value.length > charactersMax)
      return `${field} has more than ${charactersMax} characters`;
  }
  return spendingProblem(said);
}

function spendingProblem(spent: Fields): string | null {
  if (typeof spent.cost === "number" && spent.cost > COST_MAX) return `cost is more than ${COST_MAX}`;
  if (!isFields(spent.usage)) return null;
  for (const field of USAGE_FIELDS) {
    if ((spent.usage[field] as number) > TOKENS_MAX) return `usage.${field} is more than ${TOKENS_MAX}`;
  }
  return null;
}

/** What is wrong with what every stored entry carries, or null. */
export function stampProblem(entry: Fields): string | null {
  if (name(entry.id) !== null) return `its id ${name(entry.id)}`;
  if (entry.parentId !== null && name(entry.parentId) !== null) return "its parentId is neither null nor an entry id";
  if (entry.by !== undefined && name(entry.by) !== null) return `its by ${name(entry.by)}`;
  if (entry.inherited !== undefined && entry.inherited !== true) return "its inherited is not true";
  return isTimestamp(entry.timestamp) ? null : "its timestamp is not an ISO-8601 time with milliseconds, in UTC";
}

/** @throws {SessionError} `INVALID_ENTRY` unless the message is one that a session can hold. */
export function checkMessage(value: unknown): void {
  const problem = message(value);
  if (problem !== null) throw new SessionError("INVALID_ENTRY", `The message ${problem}.`);
}

function fieldProblem(value: Fields, rules: Rules): string | null {
  for (const field in rules) {
    const problem = (rules[field] as Check)(value[field]);
    if (problem !== null) return value[field] === undefined ? `${field} is missing` : `${field} ${problem}`;
  }
  return null;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
