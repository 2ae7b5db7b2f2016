import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { createHash } from "node:crypto";
import type { AgentInputItem, Session } from "@openai/agents";
import { defined } from "../../internal/defined.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import { SessionConflictError, SessionError, show } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { createHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { walkUp } from "../../tree/path-reader.ts";
import { appendToSession } from "../append-to-session.ts";
import { derivedSessionId } from "../derived-session-id.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import { costOf, priceOf } from "../../models/prices.ts";
import type { Content, ContentPart, Message } from "../../session/message.ts";
import { addUsage, NO_USAGE, type Usage } from "../../session/usage.ts";

const TRIES_MAX = 20;

/** Options of a `SkeinSession`. */
export interface SkeinSessionOptions {
  /** Default: a new id. */
  readonly sessionId?: string;
  /** The user of the session if it is created. */
  readonly userId?: string;
}

/** The part of a run's result that `recordUsage` reads: the answers of the model, each with its usage. */
export interface UsageResult {
  readonly rawResponses: readonly {
    readonly usage: {
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly totalTokens: number;
      readonly inputTokensDetails?: unknown;
      readonly outputTokensDetails?: unknown;
    };
    readonly responseId?: string | undefined;
    readonly providerData?: Readonly<Record<string, unknown>> | undefined;
  }[];
  readonly lastAgent?: { readonly model?: unknown } | undefined;
}

/** Options of `recordUsage`. */
export interface RecordUsageOptions {
  /** The model that answered, as `provider/id` (default: the model in the result, with the provider `openai`). */
  readonly model?: string;
}

/**
 * The session of the OpenAI Agents SDK on any store.
 *
 * - An item is an entry on the path to the leaf. Messages are turns, so that search and the studio find them.
 * - Removing items moves the leaf: the log keeps them.
 * - Several processes may use the same session; concurrent calls of `popItem` return different items.
 */
export class SkeinSession implements Session {
  readonly #store: SessionStore;
  readonly #options: SkeinSessionOptions;
  readonly #foreignId: string;
  readonly #sessionId: string;

  constructor(store: SessionStore, options: SkeinSessionOptions = {}) {
    checkStoreArgument(store, "SkeinSession");
    checkOptionsOf(options, { sessionId: true, userId: true } satisfies KeysOf<SkeinSessionOptions>, "SkeinSession");
    this.#store = store;
    this.#options = options;
    this.#foreignId = options.sessionId ?? uuidv7();
    this.#sessionId = derivedSessionId("openai-agents", this.#foreignId);
  }

  /** The id that the session was opened with. */
  async getSessionId(): Promise<string> {
    return this.#foreignId;
  }

  /** The last `limit` items on the path, oldest first. Reads only as much of the log as it returns. */
  async getItems(limit: number = Number.POSITIVE_INFINITY): Promise<AgentInputItem[]> {
    const items: AgentInputItem[] = [];
    if (limit <= 0) return items;
    for await (const { item } of this.#itemsUp((await this.#head())?.leafId ?? null)) {
      items.push(item);
      if (items.length >= limit) break;
    }
    return items.reverse();
  }

  /**
   * Appends items; up to 10,000 of them in one atomic append.
   *
   * @throws {SessionError} `DRIVER_VERSION` for values that are not items, which an unsupported version of the SDK may pass.
   */
  async addItems(items: AgentInputItem[]): Promise<void> {
    if (!Array.isArray(items) || !items.every(isItem)) {
      throw new SessionError(
        "DRIVER_VERSION",
        "An item of a session is an object with a type or a role, but this value is not: use a version of @openai/agents that docs/from-openai-agents.md names.",
      );
    }
    if (items.length > 0) await this.#append(items.map(draftOf));
  }

  /** Moves the leaf to before the last item, and returns that item. */
  async popItem(): Promise<AgentInputItem | undefined> {
    for (let tries = 1; ; tries++) {
      const head = await this.#head();
      const last = await this.#itemsUp(head?.leafId ?? null).next();
      if (head === null || last.done === true) return undefined;
      try {
        const options = { expectedVersion: head.version };
        await this.#store.append(this.#sessionId, [{ type: "leaf", targetId: last.value.entry.parentId }], options);
        return last.value.item;
      } catch (error) {
        if (!(error instanceof SessionConflictError) || tries >= TRIES_MAX) throw error;
      }
    }
  }

  /** Moves the leaf to before the root. */
  async clearSession(): Promise<void> {
    if ((await this.#head()) !== null) await this.#store.append(this.#sessionId, [{ type: "leaf", targetId: null }]);
  }

  /**
   * Records the usage of a run, and its cost if the model's price is known, so that the session's sums include them. The SDK
   * passes items to a session without usage. Idempotent if the answers in the result have ids.
   *
   * @throws {SessionError} `INVALID_OPTION` if the value is not the result of a run, or the model is not `provider/id`.
   */
  async recordUsage(result: UsageResult, options: RecordUsageOptions = {}): Promise<void> {
    checkOptionsOf(options, { model: true } satisfies KeysOf<RecordUsageOptions>, "recordUsage");
    const draft = usageDraft(result, options.model);
    if (draft !== null) await this.#append([draft]);
  }

  /** A separate session that begins with the items of this one. The cost does not depend on their number. */
  async fork(options: SkeinSessionOptions = {}): Promise<SkeinSession> {
    const fork = new SkeinSession(this.#store, options);
    const head = await this.#head();
    if (head === null) return fork;
    const lineage = { parents: [this.#sessionId], operator: "fork", kind: "op_fork", extras: [] } as const;
    const userId = options.userId ?? head.header.userId;
    const metadata = fork.#metadata;
    await this.#store.fork(this.#sessionId, createHeader({ id: fork.#sessionId, userId, lineage, metadata }));
    return fork;
  }

  get #metadata(): JsonObject {
    return { openaiAgentsSession: this.#foreignId };
  }

  async #append(drafts: readonly EntryDraft[]): Promise<void> {
    const header = { id: this.#sessionId, userId: this.#options.userId ?? null, metadata: this.#metadata };
    await appendToSession(this.#store, header, drafts);
  }

  #head(): Promise<SessionHead | null> {
    return this.#store.head(this.#sessionId);
  }

  async *#itemsUp(
    leafId: string | null,
  ): AsyncGenerator<{ readonly entry: Entry; readonly item: AgentInputItem }, void, undefined> {
    if (leafId === null) return;
    for await (const entry of walkUp(this.#store, this.#sessionId, leafId)) {
      const item = itemOf(entry);
      if (item !== null) yield { entry, item };
    }
  }
}

/** The `customType` of entries for items that are not messages, such as reasoning items. */
const ITEM = "openai-agents.item";

/** The metadata field of a message that holds its item without the text. */
const REST = "openaiAgents";

/** The metadata field of messages that record only the usage of a run. */
const USAGE = "openaiAgentsUsage";

function isItem(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return ("type" in value && typeof value.type === "string") || ("role" in value && typeof value.role === "string");
}

/** An item as an entry: a message, a call or a result becomes a turn, any other item a `custom` entry. */
function draftOf(item: AgentInputItem): EntryDraft {
  const fields = item as unknown as JsonObject;
  const message = callTurn(fields) ?? textTurn(fields);
  return message === null ? { type: "custom", customType: ITEM, data: fields } : { type: "message", message };
}

/** The item that an entry was made from; null if it was made otherwise. */
function itemOf(entry: Entry): AgentInputItem | null {
  if (entry.type === "custom") return entry.customType === ITEM ? copyOf(entry.data as JsonObject) : null;
  if (entry.type !== "message") return null;
  const { message } = entry;
  const rest = message.metadata?.[REST] as JsonObject | undefined;
  if (rest === undefined) return null;
  // The text was stored once, in the message itself: put it back.
  if (message.role === "tool") return copyOf({ ...rest, output: withText(rest["output"], message.content) });
  if (rest["type"] === "function_call" && message.role === "assistant")
    return copyOf({ ...rest, arguments: message.toolCalls?.[0]?.arguments ?? "" });
  return copyOf({ ...rest, content: withText(rest["content"], message.content ?? "") });
}

/** Puts the texts of a message back into the parts that `split` left. */
function withText(rest: JsonValue | undefined, content: Content): JsonValue {
  if (rest === undefined) return content as JsonValue;
  const texts = typeof content === "string" ? [content] : content.map((part) => ("text" in part ? part.text : ""));
  const fill = (part: JsonValue): JsonValue =>
    isText(part) && part["text"] === undefined ? { ...part, text: texts.shift() ?? "" } : part;
  return Array.isArray(rest) ? rest.map(fill) : fill(rest);
}

/** The message for an item with a role; null for other items. */
function textTurn(item: JsonObject): Message | null {
  const { role, content } = item;
  if (role !== "user" && role !== "assistant" && role !== "system") return null;
  if (content === undefined) return null;
  const { rest, said } = split(content);
  const { content: _content, ...fields } = item;
  const kept = rest === undefined ? fields : { ...fields, content: rest };
  return { role, content: said, metadata: { [REST]: kept } };
}

/** Splits content into its texts (`said`) and the parts without them (`rest`). */
function split(content: JsonValue | undefined): { readonly said: Content; readonly rest?: JsonValue } {
  if (typeof content === "string") return { said: content };
  const said: ContentPart[] = [];
  const take = (part: JsonValue): JsonValue => {
    if (!isText(part) || typeof part["text"] !== "string") return part;
    const { text, ...others } = part;
    said.push({ type: "text", text });
    return others;
  };
  return { rest: Array.isArray(content) ? content.map(take) : take(content ?? null), said };
}

function isText(part: JsonValue): part is JsonObject {
  const type = typeof part === "object" && part !== null ? (part as JsonObject)["type"] : undefined;
  return type === "input_text" || type === "output_text" || type === "text";
}

/** The message for a function's call or result; null for other items. */
function callTurn(item: JsonObject): Message | null {
  const { type, callId, name } = item;
  if (typeof callId !== "string" || callId === "" || typeof name !== "string" || name === "") return null;
  if (type === "function_call" && typeof item["arguments"] === "string") {
    const { arguments: given, ...rest } = item;
    const toolCalls = [{ id: callId, name, arguments: given as string }];
    return { role: "assistant", content: null, toolCalls, metadata: { [REST]: rest } };
  }
  if (type !== "function_call_result" || item["output"] === undefined) return null;
  const { output, ...others } = item;
  const { said, rest } = split(output);
  const metadata = { [REST]: rest === undefined ? others : { ...others, output: rest } };
  return { role: "tool", toolCallId: callId, name, content: said, metadata };
}

/** A mutable copy: entries are frozen, and callers may change the items that they get. */
function copyOf(item: JsonObject): AgentInputItem {
  return structuredClone(item) as unknown as AgentInputItem;
}

/** The usage of a run as a message without content, which is never sent to a model; null if no tokens were counted. */
function usageDraft(result: UsageResult, named: string | undefined): EntryDraft | null {
  const responses = result?.rawResponses;
  if (!Array.isArray(responses) || !responses.every(hasUsage)) {
    throw new SessionError(
      "INVALID_OPTION",
      "recordUsage takes the result of a run of @openai/agents, which has rawResponses with a usage each.",
    );
  }
  const usage = responses.map(usageOf).reduce(addUsage, NO_USAGE);
  if (usage.totalTokens === 0) return null;
  const model = modelOf(result, named);
  const cost = model === null ? undefined : costOf(usage, priceOf(model.provider, model.model));
  const responseIds = responses.flatMap(({ responseId }) => (typeof responseId === "string" ? [responseId] : []));
  const metadata = { [USAGE]: { responseIds } };
  const message = { role: "assistant", content: null, usage, metadata, ...model, ...defined({ cost }) } as const;
  const isNamed = responseIds.length === responses.length;
  return { type: "message", message, ...(isNamed ? { id: derivedId(responseIds) } : {}) };
}

/** An id derived from the ids of the answers, which together may be longer than an entry id. */
function derivedId(responseIds: readonly string[]): string {
  return `usage-${createHash("sha256").update(JSON.stringify(responseIds)).digest("hex").slice(0, 40)}`;
}

function hasUsage(response: UsageResult["rawResponses"][number]): boolean {
  const { inputTokens, outputTokens, totalTokens } = response?.usage ?? {};
  return [inputTokens, outputTokens, totalTokens].every((count) => Number.isSafeInteger(count) && (count ?? -1) >= 0);
}

function usageOf({ usage }: UsageResult["rawResponses"][number]): Usage {
  const { inputTokens, outputTokens, totalTokens, inputTokensDetails, outputTokensDetails } = usage;
  return {
    inputTokens,
    outputTokens,
    totalTokens: Math.max(totalTokens, inputTokens + outputTokens),
    ...defined({
      cacheReadTokens: detailOf(inputTokensDetails, "cached_tokens"),
      reasoningTokens: detailOf(outputTokensDetails, "reasoning_tokens"),
    }),
  };
}

/** The sum of one count over the details, which the SDK gives as one record or as one record for each request. */
function detailOf(details: unknown, name: string): number | undefined {
  const counts = [details].flat().flatMap((each) => {
    const count: unknown = (each as Readonly<Record<string, unknown>> | null | undefined)?.[name];
    return typeof count === "number" && count > 0 ? [count] : [];
  });
  return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0);
}

function modelOf(
  { rawResponses, lastAgent }: UsageResult,
  named: string | undefined,
): { readonly provider: string; readonly model: string } | null {
  if (named !== undefined) {
    const [, provider, model] = /^([^/]+)\/(.+)$/s.exec(named) ?? [];
    if (provider !== undefined && model !== undefined) return { provider, model };
    throw new SessionError("INVALID_OPTION", `The model ${show(named)} has no provider; write it as "provider/id".`);
  }
  const found = [rawResponses.at(-1)?.providerData?.["model"], lastAgent?.model].find(
    (model) => typeof model === "string" && model !== "",
  );
  return found === undefined ? null : { provider: "openai", model: found as string };
}
