import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { promptCache, type PromptCacheUsage } from "skein/testing";
import { type Answer, type Api, bodyOf, eventsOf } from "./emulated-answer.ts";

/** A model server on this machine whose usage is that of an emulated prompt cache. */
export interface EmulatorServer extends AsyncDisposable {
  readonly url: string;
  /** The sums of the requests with tools: those of the conversation. */
  readonly sums: CacheSums;
  /** The requests without tools, such as those for the title of a session. */
  readonly others: { requests: number; newTokens: number };
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

/** Which call the model makes in the first round of a turn, with these tools; by default, one of the first tool. */
export type ChooseCall = (tools: readonly string[]) => { readonly name: string; readonly arguments: string } | null;

/**
 * Starts the server. It answers the Messages, the Chat Completions and the Responses API, whole and as streams: a call of a tool in
 * the first round of a turn, a text in the second. So the requests of any program can be measured that can be told of its URL.
 */
export async function startEmulator(
  { provider, model }: EmulatedModel,
  chooseCall: ChooseCall = firstTool,
): Promise<EmulatorServer> {
  // Requests follow one another without a pause here; OpenAI would send more than 15 a minute to another server.
  let now = 0;
  const cache = promptCache({ provider, model, clock: () => (now += 5_000) });
  const sums: CacheSums = { requests: 0, newTokens: 0, leastNewTokens: 0, largestTokens: 0, lastTokens: 0 };
  const others = { requests: 0, newTokens: 0 };
  const server = createServer(async (request, response) => {
    const api = apiOf(request.url ?? "");
    const text = await textOf(request);
    if (api === null || text === "") return void response.writeHead(404).end();
    const body = JSON.parse(text) as Body;
    const usage = cache.ask(body);
    const tools = (body.tools ?? []).map((tool) => tool.name ?? tool.function?.name ?? "");
    if (tools.length === 0) addOther(others, usage);
    else addRequest(sums, usage, stepOf(model));
    const call = tools.length === 0 || isAfterResult(body) ? null : chooseCall(tools);
    const answer: Answer = { id: `${sums.requests + others.requests}`, model: body.model, call, usage };
    response.setHeader("content-type", body.stream === true ? "text/event-stream" : "application/json");
    response.end(body.stream === true ? eventsOf(api, answer) : JSON.stringify(bodyOf(api, answer)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sums,
    others,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Body {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages?: readonly Item[];
  readonly input?: readonly Item[];
  readonly tools?: readonly { readonly name?: string; readonly function?: { readonly name: string } }[];
}

interface Item {
  readonly role?: string;
  readonly type?: string;
  readonly content?: unknown;
}

function firstTool([name]: readonly string[]): ReturnType<ChooseCall> {
  return name === undefined ? null : { name, arguments: "{}" };
}

function apiOf(url: string): Api | null {
  const path = url.split("?")[0] ?? "";
  if (path.endsWith("/messages")) return "messages";
  if (path.endsWith("/chat/completions")) return "chat";
  return path.endsWith("/responses") ? "responses" : null;
}

function isAfterResult({ messages = [], input = [] }: Body): boolean {
  const last = messages.at(-1) ?? input.at(-1);
  if (last?.role === "tool" || last?.type === "function_call_output") return true;
  return Array.isArray(last?.content) && last.content.some((part) => (part as Item).type === "tool_result");
}

/** In steps of how many tokens a model's requests are cached: of OpenAI before gpt-5.6, 128. */
function stepOf(model: string): number {
  return /^gpt-5\.[0-5]/.test(model) ? 128 : 1;
}

function addOther(others: EmulatorServer["others"], { written, fresh }: PromptCacheUsage): void {
  others.requests += 1;
  others.newTokens += written + fresh;
}

function addRequest(sums: CacheSums, { read, written, fresh }: PromptCacheUsage, step: number): void {
  const input = read + written + fresh;
  sums.requests += 1;
  sums.newTokens += written + fresh;
  sums.leastNewTokens += input - (sums.lastTokens < 1024 ? 0 : sums.lastTokens - (sums.lastTokens % step));
  sums.lastTokens = input;
  sums.largestTokens = Math.max(sums.largestTokens, input);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks).toString("utf8");
}
