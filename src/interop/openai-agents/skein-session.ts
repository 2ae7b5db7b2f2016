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

/** Which session, and whose. */
export interface SkeinSessionOptions {
  /** Default: a new one. */
  readonly sessionId?: string;
  /** The user of a session that is new. */
  readonly userId?: string;
}

/** What `recordUsage` reads of the result of a run: the answers of the model, each with its usage. */
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

/** What a result does not say itself. */
export interface RecordUsageOptions {
  /** The model that answered, as `provider/id` (default: the one that the result names, as one of OpenAI). */
  readonly model?: string;
}

/**
 * The session of the OpenAI Agents SDK on any store.
 *
 * - An item is an entry on the path to the leaf, and what was said is a turn, so that search and the studio find it.
 * - Taking items away moves the leaf: the log keeps what was said.
 * - Several processes may use the same session; each of them takes another item when they pop at once.
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

  /** The items on the path, oldest first; the last `limit` of them. Costs what it gives. */
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
   * Appends items; they land together, up to 10,000 of them.
   *
   * @throws {SessionError} `DRIVER_VERSION` when they are no items, as of a version of the SDK that does not fit.
   */
  async addItems(items: AgentInputItem[]): Promise<void> {
    if (!Array.isArray(items) || !items.every(isItem)) {
      throw new SessionError(
        "DRIVER_VERSION",
        "An item of a session is an object with a type or a role, and this is none: use a version of @openai/agents that docs/from-openai-agents.md names.",
      );
    }
    if (items.length > 0) await this.#append(items.map(draftOf));
  }

  /** Moves the leaf before the last item, and gives that. */
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

  /** Moves the leaf before the root. */
  async clearSession(): Promise<void> {
    if ((await this.#head()) !== null) await this.#store.append(this.#sessionId, [{ type: "leaf", targetId: null }]);
  }

  /**
   * Records what a run has spent, with its cost where the model has a price, so that it is in the session's sums. The SDK
   * gives a session the items of a run without it. A result whose answers have ids counts once, however often it is recorded.
   *
   * @throws {SessionError} `INVALID_OPTION` for what is no result of a run, or a model that is not `provider/id`.
   */
  async recordUsage(result: UsageResult, { model }: RecordUsageOptions = {}): Promise<void> {
    const draft = usageDraft(result, model);
    if (draft !== null) await this.#append([draft]);
  }

  /** A session of its own that begins with what this one has now. Costs the same whatever that is. */
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

/** The `customType` of an entry with an item that is no turn, such as a reasoning item. */
const ITEM = "openai-agents.item";

/** The field of a turn's metadata with what its item has beside the text. */
const REST = "openaiAgents";

/** The metadata field of the turns that record only the usage of a run. */
const USAGE = "openaiAgentsUsage";

function isItem(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return ("type" in value && typeof value.type === "string") || ("role" in value && typeof value.role === "string");
}

/** An item as an entry: what a person, a model or a function said is a turn, anything else data on the path. */
function draftOf(item: AgentInputItem): EntryDraft {
  const fields = item as unknown as JsonObject;
  const message = callTurn(fields) ?? textTurn(fields);
  return message === null ? { type: "custom", customType: ITEM, data: fields } : { type: "message", message };
}

/** The item that an entry was made of; null for an entry that is none. */
function itemOf(entry: Entry): AgentInputItem | null {
  if (entry.type === "custom") return entry.customType === ITEM ? copyOf(entry.data as JsonObject) : null;
  if (entry.type !== "message") return null;
  const { message } = entry;
  const rest = message.metadata?.[REST] as JsonObject | undefined;
  if (rest === undefined) return null;
  // What the turn itself says was stored once.
  if (message.role === "tool") return copyOf({ ...rest, output: withText(rest["output"], message.content) });
  if (rest["type"] === "function_call" && message.role === "assistant")
    return copyOf({ ...rest, arguments: message.toolCalls?.[0]?.arguments ?? "" });
  return copyOf({ ...rest, content: withText(rest["content"], message.content ?? "") });
}

/** Content without its texts, together with them again. */
function withText(rest: JsonValue | undefined, content: Content): JsonValue {
  if (rest === undefined) return content as JsonValue;
  const texts = typeof content === "string" ? [content] : content.map((part) => ("text" in part ? part.text : ""));
  const fill = (part: JsonValue): JsonValue =>
    isText(part) && part["text"] === undefined ? { ...part, text: texts.shift() ?? "" } : part;
  return Array.isArray(rest) ? rest.map(fill) : fill(rest);
}

/** The turn of a message; null for other items. */
function textTurn(item: JsonObject): Message | null {
  const { role, content } = item;
  if (role !== "user" && role !== "assistant" && role !== "system") return null;
  if (content === undefined) return null;
  const { rest, said } = split(content);
  const { content: _content, ...fields } = item;
  const kept = rest === undefined ? fields : { ...fields, content: rest };
  return { role, content: said, metadata: { [REST]: kept } };
}

/** What content says, and what is left of it without that. */
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

/** The turn of a function's call or result; null for other items. */
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

/** Entries are frozen; whoever gets an item may change it. */
function copyOf(item: JsonObject): AgentInputItem {
  return structuredClone(item) as unknown as AgentInputItem;
}

/** What the answers of a run spent, as a turn without words, which no model is sent; null where nobody counted. */
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

/** The same for the same answers; the names of many of them may be longer than an id. */
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

/** A count of the details, which the SDK gives as one record or as one for each request. */
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
