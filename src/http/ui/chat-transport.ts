import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import type { ChatTransport, UIMessage, UIMessageChunk } from "./ai-sdk.ts";
import { RUN_HEADER } from "../chat-wire.ts";
import { errorOf } from "../client/client-error.ts";
import { EventParser } from "../client/event-parser.ts";
import { encodeSegment } from "../path-segment.ts";

type HeaderValues = Readonly<Record<string, string>>;

/** Options of a chat transport. */
export interface ChatTransportInit {
  /** The address of the chat routes (default `/api/chat`). */
  readonly api?: string;
  /** Headers such as credentials; a function is called for each request. */
  readonly headers?: HeaderValues | (() => HeaderValues | Promise<HeaderValues>);
  /** Further fields of the request for an answer: `agent`, `model`. */
  readonly body?: object;
  readonly credentials?: "omit" | "same-origin" | "include";
  /** Replaces the runtime's own `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

const KEYS: KeysOf<ChatTransportInit> = { api: true, headers: true, body: true, credentials: true, fetch: true };

/** A transport for `useChat` that can also load the earlier messages. */
export interface SkeinChatTransport<Message extends UIMessage> extends ChatTransport<Message> {
  /** Loads the messages of a chat; none if it does not exist yet. */
  messages(chatId: string): Promise<Message[]>;
  /**
   * Continues a chat on the branch of another answer or question: `entryId` is one of `metadata.skein.siblings`. Returns the
   * messages there, for `setMessages`. Rejected with `SESSION_BUSY` while a run is open.
   */
  select(chatId: string, entryId: string): Promise<Message[]>;
}

/**
 * A transport for `useChat` whose `stop()` cancels the run. The AI SDK's own transport only drops the connection, which
 * looks like a reload. This one also sends only the last message instead of all.
 */
export function createChatTransport<Message extends UIMessage = UIMessage>(
  init: ChatTransportInit = {},
): SkeinChatTransport<Message> {
  checkOptionsOf(init, KEYS, "createChatTransport");
  const latest = new Map<string, Followed>();
  const pathOf = (chatId: string, rest = ""): string => `/${encodeSegment(chatId)}${rest}`;

  /** Cancels the run when the signal aborts: the user stopped it, unless another stream replaces this one. */
  const follow = (chatId: string, signal: AbortSignal | null): Followed => {
    const followed: Followed = {};
    latest.set(chatId, followed);
    const stop = async (): Promise<void> => {
      // A stream that replaces this one starts directly after the abort.
      await new Promise((resolve) => setTimeout(resolve));
      if (latest.get(chatId) !== followed) return;
      await ask(init, pathOf(chatId, "/stop"), { said: { runId: followed.runId }, keepalive: true });
    };
    const onAbort = (): void => {
      followed.stopped = stop().catch(() => {});
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    return followed;
  };

  return {
    async sendMessages({ chatId, messages, trigger, messageId, body, headers = {}, abortSignal: signal = null }) {
      // A new message would be refused until the cancelled run has ended.
      await latest.get(chatId)?.stopped;
      const followed = follow(chatId, signal);
      const said = { ...init.body, ...body, id: chatId, messages: messages.slice(-1), trigger, messageId };
      return chunksOf(await ask(init, "", { said, headers, signal }), followed);
    },
    async reconnectToStream({ chatId, headers = {}, abortSignal: signal = null }) {
      const followed = follow(chatId, signal);
      const response = await ask(init, pathOf(chatId, "/stream"), { headers, signal });
      return response.status === 204 ? null : chunksOf(response, followed);
    },
    async messages(chatId) {
      const response = await ask(init, pathOf(chatId));
      return ((await response.json()) as { messages: Message[] }).messages;
    },
    async select(chatId, entryId) {
      const response = await ask(init, pathOf(chatId, "/select"), { said: { entryId } });
      return ((await response.json()) as { messages: Message[] }).messages;
    },
    // AI SDK 6 asks whether a resumed stream starts at the beginning.
    ...{ resumeStreamIsReplay: true },
  };
}

/** A stream of a chat. */
interface Followed {
  /** The run of the stream, once it is known. */
  runId?: string;
  /** Resolves once the cancel request was sent. */
  stopped?: Promise<void>;
}

/** Sends a message with POST, or resumes with GET. */
async function ask(
  { api = "/api/chat", headers = {}, credentials = "same-origin", fetch = globalThis.fetch }: ChatTransportInit,
  path: string,
  { said, ...init }: RequestInit & { readonly said?: object } = {},
): Promise<Response> {
  const given = new Headers(typeof headers === "function" ? await headers() : headers);
  for (const [name, value] of new Headers(init.headers)) given.set(name, value);
  if (said !== undefined) given.set("content-type", "application/json");
  const sent = said === undefined ? {} : { method: "POST", body: JSON.stringify(said) };
  const response = await fetch(api.replace(/\/$/, "") + path, { ...init, ...sent, credentials, headers: given });
  if (!response.ok) throw await errorOf(response);
  return response;
}

function chunksOf({ body, headers }: Response, followed: Followed): ReadableStream<UIMessageChunk> {
  const runId = headers.get(RUN_HEADER);
  if (runId !== null) followed.runId = decodeURIComponent(runId);
  const parser = new EventParser();
  const chunks = new TransformStream<string, UIMessageChunk>({
    transform(text, controller) {
      for (const { data } of parser.push(text)) {
        if (data !== null && data !== "[DONE]") controller.enqueue(JSON.parse(data) as UIMessageChunk);
      }
    },
  });
  return (body as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(new TextDecoderStream()).pipeThrough(chunks);
}
