import type { JsonObject } from "../../internal/json.ts";
import { blobHash } from "../blob.ts";
import { checkKeys, type Habits } from "../check-arguments.ts";
import { SessionError, show } from "../errors.ts";
import { isName } from "../id.ts";
import { COST_MAX, MODEL_CHARACTERS_MAX, NAME_CHARACTERS_MAX, REASON_CHARACTERS_MAX, TOKENS_MAX } from "../limits.ts";
import type { AssistantMessage, InputMessage, ToolMessage } from "../message.ts";
import { USAGE_FIELDS } from "../usage.ts";
import type { EntryBody } from "./entry.ts";
import { isTimestamp } from "./header.ts";
import { SHARED_FIELDS } from "./setup.ts";

type Fields = { readonly [key: string]: unknown };
type Problem = (value: unknown) => string | null;

/** The JSON Schema of a field; a complex type is only named. */
export interface FieldSchema {
  readonly schema: JsonObject | "content" | "message" | "requestMessages" | "toolCalls" | "usage";
  readonly nullable?: true;
  readonly optional?: true;
}

/** How a field is checked and documented. Every check except an optional one refuses a missing field. */
interface Check extends FieldSchema {
  (value: unknown): string | null;
}
interface OptionalCheck extends Check {
  readonly optional: true;
}

type Rules = Readonly<Record<string, Check>>;
/** A rule for each field of a type; the compiler refuses a type with a field that has no rule. */
type RulesOf<T, Key extends PropertyKey> = {
  readonly [Field in Exclude<keyof T, Key>]-?: Record<never, never> extends Pick<T, Field> ? OptionalCheck : Check;
};

function check(schema: FieldSchema["schema"], problem: Problem): Check {
  return Object.assign(problem, { schema });
}

const text = check({ type: "string" }, (value) => (typeof value === "string" ? null : "is not a text"));
const filled = check({ type: "string", minLength: 1 }, (value) =>
  typeof value === "string" && value !== "" ? null : "is not a text, or empty",
);
const flag = check({ type: "boolean" }, (value) => (typeof value === "boolean" ? null : "is not true or false"));
const count = check({ type: "integer", minimum: 0 }, (value) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? null : "is not a whole number of 0 or more",
);
const amount = check({ type: "number", minimum: 0 }, (value) =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? null : "is not a number of 0 or more",
);
const time = check({ type: "string", format: "date-time" }, (value) =>
  isTimestamp(value) ? null : "is not an ISO-8601 time with milliseconds, in UTC",
);
const object = check({ type: "object" }, (value) => (isFields(value) ? null : "is not an object"));
const anything = check({}, () => null);
const oneOf = (...words: readonly string[]): Check =>
  check({ type: "string", enum: words }, (value) =>
    words.includes(value as string) ? null : `is not one of ${words.join(", ")}`,
  );
const texts = check({ type: "array", items: { type: "string" } }, (value) =>
  Array.isArray(value) && value.every((each) => typeof each === "string") ? null : "is not a list of texts",
);
const nullOr = (inner: Check): Check =>
  Object.assign((value: unknown) => (value === null ? null : inner(value)), inner, { nullable: true as const });
const optional = (inner: Check): OptionalCheck =>
  Object.assign((value: unknown) => (value === undefined ? null : inner(value)), inner, { optional: true as const });
const name = check({ type: "string", minLength: 1, maxLength: 512 }, (value) =>
  isName(value) ? null : "is not an id of 1 to 512 characters without control characters",
);

const usage = check("usage", (value) => {
  if (!isFields(value)) return "is not an object";
  for (const [index, field] of USAGE_FIELDS.entries()) {
    if (value[field] === undefined ? index < 3 : amount(value[field]) !== null) return `has no valid ${field}`;
  }
  return null;
});

const content = check("content", (value) => {
  if (typeof value === "string") return null;
  if (!Array.isArray(value)) return "is neither a text nor a list of parts";
  for (const [index, part] of value.entries()) {
    const problem = partProblem(part);
    if (problem !== null) return `has a part ${index} that ${problem}`;
  }
  return null;
});

function partProblem(part: unknown): string | null {
  if (!isFields(part)) return "is not an object";
  if (part.type === "text" || part.type === "thinking") return typeof part.text === "string" ? null : "has no text";
  if (part.type === "image_url" || part.type === "input_image" || part.type === "image-url")
    return `has the type ${show(part.type)} of another SDK; give an image as { type: "image", mediaType, data } with data as base64`;
  if (part.type === "input_text" || part.type === "output_text")
    return `has the type ${show(part.type)} of another SDK; give a text as { type: "text", text }`;
  if (part.type !== "image" && part.type !== "file") return `has the unknown type ${show(part.type)}`;
  if (typeof part.mediaType !== "string") return "has no mediaType";
  if (part.blob === undefined) return typeof part.data === "string" ? null : "has no data";
  if (part.data !== undefined) return "has both data and a blob";
  if (blobHash(part.blob) === null)
    return `has the blob ${show(part.blob)}, which is not sha256: and 64 hexadecimal digits`;
  return Number.isSafeInteger(part.bytes) && (part.bytes as number) >= 0
    ? null
    : "has a blob without its number of bytes";
}

const toolCalls = check("toolCalls", (value) => {
  if (!Array.isArray(value)) return "is not a list";
  const whole = value.every(
    (call) =>
      isFields(call) && filled(call.id) === null && filled(call.name) === null && typeof call.arguments === "string",
  );
  return whole ? null : "has a call without id, name, or arguments as text";
});

const asked = {
  type: "object",
  properties: { callId: { type: "string" }, question: { type: "string" } },
  required: ["callId", "question"],
};
const questions = check({ type: "array", items: asked }, (value) => {
  if (!Array.isArray(value)) return "is not a list";
  const whole = value.every((each) => isFields(each) && filled(each.callId) === null && name(each.question) === null);
  return whole ? null : "has one without a callId or the entry that asks";
});

const roster = check(
  {
    type: "object",
    properties: { messageId: { type: "string" }, agents: { type: "array", items: { type: "string" } } },
    required: ["messageId", "agents"],
  },
  (value) =>
    isFields(value) && name(value.messageId) === null && texts(value.agents) === null
      ? null
      : "has no messageId or no agents",
);

const extras = { agent: optional(text), metadata: optional(object) };
/** The rules for the fields of a message, by its role. */
export const messageRules: {
  readonly system: RulesOf<InputMessage, "role">;
  readonly user: RulesOf<InputMessage, "role">;
  readonly assistant: RulesOf<AssistantMessage, "role">;
  readonly tool: RulesOf<ToolMessage, "role">;
} = {
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
    providerData: optional(anything),
  },
  tool: { ...extras, content, toolCallId: filled, name: text, isError: optional(flag) },
};

const MESSAGE_HABITS: Habits = {
  tool_calls: "the calls of an answer are toolCalls, each { id, name, arguments }",
  tool_call_id: "the call of a result is toolCallId",
  parts: 'its parts are content: [{ type: "text", text }]',
};

/**
 * Refuses a message with a field that none of its role has. It would be stored, but never sent to a model.
 *
 * @throws {SessionError} `INVALID_OPTION`
 */
export function checkMessageKeys(message: unknown, call: string): void {
  const rules = isFields(message) ? rulesIn(messageRules, String(message.role)) : undefined;
  if (rules === undefined) return;
  const keys = Object.fromEntries(["role", ...Object.keys(rules)].map((key) => [key, true] as const));
  checkKeys(message, keys, call, MESSAGE_HABITS);
}

const message = check("message", (value) => {
  if (!isFields(value)) return "is not an object";
  const rules = rulesIn(messageRules, String(value.role));
  if (rules === undefined) return `has the role ${show(value.role)}, which is not one of system, user, assistant, tool`;
  const problem = fieldProblem(value, rules);
  return problem === null ? null : `is not valid: ${problem}`;
});

const REQUEST_ROLES: readonly unknown[] = ["system", "user", "assistant"];
/** Calls, results and costs are not valid input: with them, a request could make tools run that no model called. */
const requestMessages = check("requestMessages", (value) => {
  if (!Array.isArray(value) || value.length === 0) return "is not a list with at least one message";
  for (const [index, each] of value.entries()) {
    if (!isFields(each) || !REQUEST_ROLES.includes(each.role))
      return `has a message ${index} whose role is not one of ${REQUEST_ROLES.join(", ")}`;
    const other = Object.keys(each).find((key) => key !== "role" && key !== "content");
    if (other !== undefined) return `has a message ${index} with the field ${show(other)}; give role and content only`;
    const problem = content(each.content);
    if (problem !== null) return `has a message ${index} whose content ${problem}`;
  }
  return null;
});

const toolSchema = {
  type: "object",
  properties: { name: { type: "string" }, description: { type: "string" }, parameters: { type: "object" } },
  required: ["name", "description", "parameters"],
};
const toolSchemas = check({ type: "array", items: toolSchema }, (value) => {
  if (!Array.isArray(value)) return "is not a list";
  const whole = value.every(
    (tool) =>
      isFields(tool) && filled(tool.name) === null && text(tool.description) === null && isFields(tool.parameters),
  );
  return whole ? null : "has a tool without name, description or parameters";
});

const TOOL_CHOICES: readonly unknown[] = ["auto", "none", "required"];
const toolChoice = check({}, (value) =>
  TOOL_CHOICES.includes(value) || (isFields(value) && filled(value.name) === null)
    ? null
    : `is not one of ${TOOL_CHOICES.join(", ")}, nor an object with the name of a tool`,
);

const shared = {
  type: "object",
  properties: Object.fromEntries(SHARED_FIELDS.map((field) => [field, { type: "string" }])),
};
const unchanged = check(shared, (value) => {
  if (!isFields(value)) return "is not an object";
  for (const field of SHARED_FIELDS)
    if (value[field] !== undefined && name(value[field]) !== null) return `has a ${field} that ${name(value[field])}`;
  return null;
});

/** The rules for an entry's own fields, by its type. */
export const entryRules: { readonly [Type in EntryBody["type"]]: RulesOf<Extract<EntryBody, { type: Type }>, "type"> } =
  {
    message: { message, setup: optional(name) },
    compaction: {
      summary: filled,
      firstKeptEntryId: name,
      tokensBefore: amount,
      details: optional(anything),
      usage: optional(usage),
      cost: optional(amount),
    },
    branch_summary: {
      summary: text,
      fromId: nullOr(name),
      details: optional(anything),
      usage: optional(usage),
      cost: optional(amount),
    },
    custom_message: { customType: filled, content, display: flag, details: optional(anything) },
    thinking_level_change: { thinkingLevel: filled },
    model_change: { provider: filled, modelId: filled },
    variables: {
      set: object,
      unset: texts,
      systemPrompt: optional(nullOr(text)),
      activeTools: optional(texts),
      activeSkills: optional(texts),
    },
    custom: { customType: filled, data: optional(anything) },
    context_edit: {
      targetId: optional(name),
      message: optional(nullOr(message)),
      reason: optional(text),
      undo: optional(name),
    },
    setup: {
      agent: name,
      instructions: optional(text),
      instructionsDigest: optional(filled),
      tools: optional(toolSchemas),
      thinkingLevel: optional(filled),
      toolChoice: optional(toolChoice),
      output: optional(object),
      maxOutputTokens: optional(amount),
      temperature: optional(amount),
      stop: optional(texts),
      providerOptionsDigest: optional(filled),
      cacheLifetimeMs: optional(amount),
      transformed: optional(flag),
      unchanged: optional(unchanged),
    },
    erased: { was: filled, reason: optional(text) },
    leaf: { targetId: nullOr(name) },
    label: { targetId: name, label: nullOr(filled) },
    session_info: { name: text },
    status: { status: oneOf("active", "suspended", "closed", "expired"), reason: optional(text) },
    run: {
      runId: name,
      phase: oneOf("started", "finished", "failed", "cancelled"),
      error: optional(anything),
      usage: optional(usage),
      truncated: optional(flag),
      output: optional(anything),
      sandbox: optional(object),
      claim: optional(count),
      agent: optional(name),
      model: optional(filled),
      tools: optional(texts),
      setup: optional(name),
      before: optional(count),
      group: optional(roster),
    },
    run_request: {
      runId: name,
      agent: optional(name),
      group: optional(name),
      model: optional(filled),
      options: optional(object),
      input: optional(content),
      messages: optional(requestMessages),
      notBefore: optional(time),
      deadline: optional(time),
    },
    run_parked: {
      runId: name,
      questions,
      expiresAt: optional(time),
      host: optional(text),
    },
    run_blocked: { runId: name, code: filled, message: text },
    cancel: { runId: name, reason: optional(text) },
    approval: {
      runId: name,
      callId: filled,
      index: optional(count),
      digest: optional(text),
      decision: optional(anything),
      question: optional(name),
      note: optional(text),
      asked: optional(object),
    },
    queued: { runId: name, kind: oneOf("steer", "followUp"), content },
    compaction_undone: { targetId: name },
    trailer: { closedAt: time, entryCount: count, usage },
    effect: { runId: name, callId: filled, index: optional(count) },
    prune: { targetId: name },
    lost: { reason: text },
  };

/**
 * What is wrong with an entry's own fields, or null. Unknown fields are accepted, because a later version may have
 * added them.
 */
export function bodyProblem(body: Fields): string | null {
  if (typeof body.type !== "string" || body.type === "") return "it has no type";
  const rules = rulesIn(entryRules, body.type);
  if (rules === undefined) return null;
  const problem = fieldProblem(body, rules);
  if (problem !== null) return problem;
  if (body.type === "run_request") return requestProblem(body);
  return body.type === "context_edit" ? editProblem(body) : null;
}

/** What is wrong with a request as a whole, once each field is valid; or null. */
function requestProblem({ input, messages, group }: Fields): string | null {
  if ((input === undefined) === (messages === undefined))
    return input === undefined ? "input is missing, and so are messages" : "it has both input and messages";
  return messages !== undefined && group !== undefined ? "a group takes input, not messages" : null;
}

/** Fields that a replacement must not have: it had no cost, and no provider signed it. */
const UNEDITED_FIELDS = ["usage", "cost", "providerData"] as const;

/** What is wrong with an edit as a whole, once each field is valid; or null. */
function editProblem({ targetId, message, reason, undo }: Fields): string | null {
  if (undo !== undefined)
    return [targetId, message, reason].every((field) => field === undefined)
      ? null
      : "it undoes an edit and has other fields";
  if (targetId === undefined) return "targetId is missing, and so is undo";
  if (message === undefined) return "message is missing; give null to leave the entry out";
  const field = UNEDITED_FIELDS.find((key) => isFields(message) && message[key] !== undefined);
  return field === undefined ? null : `message has ${field}, which a replacement does not have`;
}

type Limits = Readonly<Record<string, number>>;

/** The most characters of texts that are also shown or stored with other entries, by type and field. */
const CHARACTERS_MAX: Readonly<Record<string, Limits>> = {
  message: { provider: MODEL_CHARACTERS_MAX, model: MODEL_CHARACTERS_MAX },
  model_change: { provider: MODEL_CHARACTERS_MAX, modelId: MODEL_CHARACTERS_MAX },
  thinking_level_change: { thinkingLevel: MODEL_CHARACTERS_MAX },
  label: { label: NAME_CHARACTERS_MAX },
  session_info: { name: NAME_CHARACTERS_MAX },
  status: { reason: REASON_CHARACTERS_MAX },
  cancel: { reason: REASON_CHARACTERS_MAX },
  context_edit: { reason: REASON_CHARACTERS_MAX },
  run_blocked: { code: NAME_CHARACTERS_MAX, message: REASON_CHARACTERS_MAX },
  approval: { note: REASON_CHARACTERS_MAX },
  run: { model: MODEL_CHARACTERS_MAX },
  run_request: { model: MODEL_CHARACTERS_MAX },
};

/**
 * Which value of a new entry is too large, or null: a cost or usage beyond that of any model answer, or an overlong
 * name, label or reason. A stored log stays readable whatever its values are.
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

/** What is wrong with the fields that every stored entry has, or null. */
export function stampProblem(entry: Fields): string | null {
  if (name(entry.id) !== null) return `its id ${name(entry.id)}`;
  if (entry.parentId !== null && name(entry.parentId) !== null) return "its parentId is neither null nor an entry id";
  if (entry.by !== undefined && name(entry.by) !== null) return `its by ${name(entry.by)}`;
  if (entry.run !== undefined && name(entry.run) !== null) return `its run ${name(entry.run)}`;
  if (entry.inherited !== undefined && entry.inherited !== true) return "its inherited is not true";
  return isTimestamp(entry.timestamp) ? null : "its timestamp is not an ISO-8601 time with milliseconds, in UTC";
}

/** @throws {SessionError} `INVALID_ENTRY` unless the value is a valid message. */
export function checkMessage(value: unknown): void {
  const problem = message(value);
  if (problem !== null) throw new SessionError("INVALID_ENTRY", `The message ${problem}.`);
}

function rulesIn(table: Readonly<Record<string, Rules>>, key: string): Rules | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
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
