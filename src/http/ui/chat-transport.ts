import type { ChatTransport, UIMessage, UIMessageChunk } from "./ai-sdk.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { RUN_HEADER } from "../chat-wire.ts";
import { errorOf } from "../client/client-error.ts";
import { EventParser } from "../client/event-parser.ts";
import { encodeSegment } from "../path-segment.ts";
import { runIdOf } from "./message-id.ts";

type HeaderValues = Readonly<Record<string, string>>;

/** Where the chat routes are, and what goes with every request. */
export interface ChatTransportInit {
  /** The address of the chat routes (default `/api/chat`). */
  readonly api?: string;
  /** Such as who asks; a function is asked each time. */
  readonly headers?: HeaderValues | (() => HeaderValues | Promise<HeaderValues>);
  /** What else the request for an answer says: `agent`, `model`. */
  readonly body?: object;
  readonly credentials?: "omit" | "same-origin" | "include";
  /** Asks instead of the runtime's own `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/** A transport for `useChat` that also reads what was said before. */
export interface SkeinChatTransport<Message extends UIMessage> extends ChatTransport<Message> {
  /** What a chat has come to; none for one that has not begun. */
  messages(chatId: string): Promise<Message[]>;
}

/**
 * A transport for `useChat` whose `stop()` stops the run, which the stock one cannot: it only drops the connection, as a
 * reload does. It sends the last message instead of all of them, and a request that is repeated asks for the same run.
 */
export function createChatTransport<Message extends UIMessage = UIMessage>(
  init: ChatTransportInit = {},
): SkeinChatTransport<Message> {
  return new HttpChatTransport<Message>(init);
}

type Sent<Message extends UIMessage> = Parameters<ChatTransport<Message>["sendMessages"]>[0];
type Joined<Message extends UIMessage> = Parameters<ChatTransport<Message>["reconnectToStream"]>[0];

class HttpChatTransport<Message extends UIMessage> implements SkeinChatTransport<Message> {
  readonly resumeStreamIsReplay = true;
  readonly #init: ChatTransportInit;
  readonly #api: string;
  readonly #latest = new Map<string, Followed>();

  constructor(init: ChatTransportInit) {
    this.#init = init;
    this.#api = (init.api ?? "/api/chat").replace(/\/$/, "");
  }

  async sendMessages(sent: Sent<Message>): Promise<ReadableStream<UIMessageChunk>> {
    const { chatId, messages, trigger, messageId, abortSignal } = sent;
    // What is said after a stop would be refused while the run goes on.
    await this.#latest.get(chatId)?.stopped;
    const last = messages.at(-1);
    const runId = last?.role === "user" ? runIdOf(last.id, isAgain(sent) ? uuidv7() : undefined) : undefined;
    const known = { id: chatId, messages: last === undefined ? [] : [last], trigger, messageId, runId };
    const followed = this.#follow(chatId, abortSignal, runId);
    const response = await this.#ask("", sent, { body: { ...this.#init.body, ...sent.body, ...known } });
    return chunksOf(response, followed);
  }

  async reconnectToStream(joined: Joined<Message>): Promise<ReadableStream<UIMessageChunk> | null> {
    const { chatId, abortSignal } = joined;
    const before = this.#latest.get(chatId);
    if (before !== undefined) before.replaced = true;
    const followed = this.#follow(chatId, abortSignal, undefined);
    const response = await this.#ask(`/${encodeSegment(chatId)}/stream`, joined, {});
    return response.status === 204 ? null : chunksOf(response, followed);
  }

  async messages(chatId: string): Promise<Message[]> {
    const response = await this.#ask(`/${encodeSegment(chatId)}`, {}, {});
    return ((await response.json()) as { messages: Message[] }).messages;
  }

  /** Stops the run once the signal aborts, which a person did, or a stream that took the place of this one. */
  #follow(chatId: string, signal: AbortSignal | undefined, runId: string | undefined): Followed {
    const followed: Followed = { runId, replaced: false, stopped: null };
    this.#latest.set(chatId, followed);
    const stop = async (): Promise<void> => {
      // The stream that takes the place of this one begins right after the abort.
      await new Promise((resolve) => setTimeout(resolve));
      if (followed.replaced) return;
      const body = followed.runId === undefined ? {} : { runId: followed.runId };
      await this.#ask(`/${encodeSegment(chatId)}/stop`, {}, { body, keepalive: true });
    };
    const onAbort = (): void => {
      followed.stopped = stop().catch(() => {});
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    return followed;
  }

  async #ask(
    path: string,
    { headers, abortSignal }: { headers?: Record<string, string> | Headers; abortSignal?: AbortSignal | undefined },
    { body, keepalive }: { body?: object; keepalive?: true },
  ): Promise<Response> {
    const { headers: own = {}, credentials, fetch = globalThis.fetch } = this.#init;
    const given = new Headers(typeof own === "function" ? await own() : own);
    for (const [name, value] of new Headers(headers ?? {})) given.set(name, value);
    if (body !== undefined) given.set("content-type", "application/json");
    const response = await fetch(this.#api + path, {
      method: body === undefined ? "GET" : "POST",
      headers: given,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(credentials === undefined ? {} : { credentials }),
      ...(abortSignal === undefined ? {} : { signal: abortSignal }),
      ...(keepalive === undefined ? {} : { keepalive }),
    });
    if (!response.ok) throw await errorOf(response);
    return response;
  }
}

/** A stream of a chat. */
interface Followed {
  /** The run that it tells of, as soon as that is known. */
  runId: string | undefined;
  /** Whether another stream of the chat took its place. */
  replaced: boolean;
  /** Resolves once the server was told to stop the run. */
  stopped: Promise<void> | null;
}

function chunksOf({ body, headers }: Response, followed: Followed): ReadableStream<UIMessageChunk> {
  const runId = headers.get(RUN_HEADER);
  if (runId !== null) followed.runId = decodeURIComponent(runId);
  const parser = new EventParser();
  const decoder = new TextDecoder();
  return (body as ReadableStream<Uint8Array>).pipeThrough(
    new TransformStream<Uint8Array, UIMessageChunk>({
      transform(bytes, controller) {
        for (const { data } of parser.push(decoder.decode(bytes, { stream: true }))) {
          if (data !== null && data !== "[DONE]") controller.enqueue(JSON.parse(data) as UIMessageChunk);
        }
      },
    }),
  );
}

/** Whether a person's message was answered before: it is answered once more, or was changed. */
function isAgain({ trigger, messageId }: Pick<Sent<UIMessage>, "trigger" | "messageId">): boolean {
  return trigger === "regenerate-message" || messageId !== undefined;
}
