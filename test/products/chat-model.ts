import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The fields of an OpenAI request on which the answers here depend. */
export interface Asked {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly response_format?: unknown;
}

/** The answer of a model: a text, a stream of pieces, or tool calls. */
export type Answer =
  | string
  | AsyncIterable<string>
  | readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[];

/** An endpoint on this machine that implements OpenAI's chat completions. */
export interface ChatModel extends AsyncDisposable {
  readonly url: string;
  readonly asked: readonly Asked[];
}

const CHARACTERS_PER_TOKEN = 4;

/** Starts an endpoint whose model is a function. It counts a token for every four characters. */
export async function openChatModel(answer: (asked: Asked) => Answer): Promise<ChatModel> {
  const asked: Asked[] = [];
  let calls = 0;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const question = JSON.parse(body) as Asked;
    asked.push(question);
    const given = answer(question);
    const promptTokens = tokensOf(JSON.stringify(question.messages));
    let text = "";
    const isText = typeof given === "string" || !(Symbol.iterator in given);
    const parts = isText
      ? []
      : given.map(({ name, arguments: args }) => {
          const call = { name, arguments: JSON.stringify(args) };
          text += call.arguments;
          return { id: `call_${++calls}`, type: "function", function: call };
        });
    const head = { id: "chatcmpl-1", created: 1, model: question.model };
    const finish_reason = isText ? "stop" : "tool_calls";
    const usage = (): object => {
      const completionTokens = tokensOf(text);
      const total_tokens = promptTokens + completionTokens;
      return { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens };
    };
    if (question.stream !== true) {
      if (isText) for await (const piece of typeof given === "string" ? [given] : given) text += piece;
      const message = { role: "assistant", content: text, ...(!isText && { content: null, tool_calls: parts }) };
      const choices = [{ index: 0, message, finish_reason }];
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ ...head, object: "chat.completion", choices, usage: usage() }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (chunk: object): void =>
      void response.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...chunk })}\n\n`);
    if (isText) {
      for await (const piece of typeof given === "string" ? [given] : given) {
        text += piece;
        send({ choices: [{ index: 0, delta: { content: piece } }] });
      }
    } else {
      const tool_calls = parts.map((part, index) => ({ index, ...part }));
      send({ choices: [{ index: 0, delta: { tool_calls } }] });
    }
    send({ choices: [{ index: 0, delta: {}, finish_reason }] });
    send({ choices: [], usage: usage() });
    response.end("data: [DONE]\n\n");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

/** The last message, as text. */
export function lastText({ messages }: Asked): string {
  const content = messages.at(-1)?.content;
  if (typeof content === "string") return content;
  return (content as readonly { text?: string }[] | undefined)?.map(({ text }) => text ?? "").join("") ?? "";
}
