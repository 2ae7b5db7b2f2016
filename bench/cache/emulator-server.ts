import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type PromptCache, promptCache } from "skein/testing";

/** A model server on this machine whose usage is that of an emulated prompt cache. */
export interface EmulatorServer extends AsyncDisposable {
  readonly url: string;
  /** The sums of all requests that it answered. */
  readonly sums: CacheSums;
}

/** The tokens of the requests of one session. */
export interface CacheSums {
  requests: number;
  /** The tokens that were not read from the cache. */
  newTokens: number;
  /** The least that these can be, as the provider caches whole steps only. */
  leastNewTokens: number;
  largestTokens: number;
  lastTokens: number;
}

/** The provider of an emulator, and its model. */
export interface EmulatedModel {
  readonly provider: "anthropic" | "openai";
  readonly model: string;
}

/**
 * Starts the server. It answers the Messages and the Chat Completions API without streams: a call of the first tool in the first
 * round of a turn, a text in the second.
 */
export async function startEmulator({ provider, model }: EmulatedModel): Promise<EmulatorServer> {
  // Requests follow one another without a pause here; OpenAI would send more than 15 a minute to another server.
  let now = 0;
  const cache = promptCache({ provider, model, clock: () => (now += 5_000) });
  const sums: CacheSums = { requests: 0, newTokens: 0, leastNewTokens: 0, largestTokens: 0, lastTokens: 0 };
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await textOf(request)) as Body;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answerTo(body, cache, sums)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sums,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Body {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly system?: unknown;
  readonly tools?: readonly { readonly name?: string; readonly function?: { readonly name: string } }[];
}

function answerTo(body: Body, cache: PromptCache, sums: CacheSums): object {
  const { read, written, fresh } = cache.ask(body);
  const input = read + written + fresh;
  sums.requests += 1;
  sums.newTokens += input - read;
  // Models of OpenAI before gpt-5.6 cache steps of 128 tokens, from 1,024 on.
  const step = /^gpt-5\.[0-5]/.test(body.model) ? 128 : 1;
  sums.leastNewTokens += input - (sums.lastTokens < 1024 ? 0 : sums.lastTokens - (sums.lastTokens % step));
  sums.lastTokens = input;
  sums.largestTokens = Math.max(sums.largestTokens, input);
  const last = body.messages.at(-1);
  const isResult = last?.role === "tool" || JSON.stringify(last?.content).includes("tool_result");
  const [tool] = body.tools ?? [];
  const calls = isResult || tool === undefined ? [] : [tool.name ?? tool.function?.name ?? ""];
  const id = `call_${sums.requests}`;
  if (body.model.startsWith("claude")) {
    const text = { type: "text", text: "Done." };
    return {
      type: "message",
      model: body.model,
      content: calls.length === 0 ? [text] : calls.map((name) => ({ type: "tool_use", id, name, input: {} })),
      stop_reason: calls.length === 0 ? "end_turn" : "tool_use",
      usage: {
        input_tokens: fresh,
        output_tokens: 5,
        cache_read_input_tokens: read,
        cache_creation_input_tokens: written,
      },
    };
  }
  const toolCalls = calls.map((name) => ({ id, type: "function", function: { name, arguments: "{}" } }));
  return {
    model: body.model,
    choices: [
      {
        finish_reason: calls.length === 0 ? "stop" : "tool_calls",
        message: {
          role: "assistant",
          content: calls.length === 0 ? "Done." : null,
          ...(calls.length > 0 && { tool_calls: toolCalls }),
        },
      },
    ],
    usage: {
      prompt_tokens: input,
      completion_tokens: 5,
      total_tokens: input + 5,
      prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    },
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks).toString("utf8");
}
