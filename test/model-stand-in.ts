import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type ChatCompletionRequest, type FixtureResponse, LLMock } from "@copilotkit/aimock";
import type { ToolCall } from "../src/session/message.ts";

/** A mock server on this machine with the APIs of several providers, which follows simple instructions. */
export interface StandIn extends AsyncDisposable {
  readonly url: string;
}

/** The answer of the mock model: it repeats the user's text, and calls the first tool that the text is about. */
export function plainAnswer(
  text: string,
  tools: readonly string[],
): { readonly content: string | null; readonly toolCalls?: readonly ToolCall[] } {
  const [name] = tools;
  if (name === undefined || !text.includes("with the tool")) return { content: `You said: ${text}` };
  return { content: null, toolCalls: [{ id: "call_a1", name, arguments: '{"number":"4711"}' }] };
}

/** Starts the mock server. */
export async function openStandIn(): Promise<StandIn> {
  const mock = new LLMock({ host: "127.0.0.1", port: 0, logLevel: "silent" });
  mock.addFixture({ match: { predicate: () => true }, response: answerOf });
  await mock.start();
  const server = createServer((request, response) => void forward(request, response, mock.url));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await mock.stop();
    },
  };
}

function answerOf({ messages, tools = [] }: ChatCompletionRequest): FixtureResponse {
  const last = messages.at(-1);
  const parts = typeof last?.content === "string" ? [{ text: last.content }] : (last?.content ?? []);
  const text = parts.map((part) => part.text ?? "").join("\n");
  const names = last?.role === "user" ? tools.map((tool) => tool.function.name) : [];
  const { content, toolCalls } = plainAnswer(text, names);
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, input_tokens: 10, output_tokens: 5 };
  return toolCalls === undefined ? { content: content ?? "", usage } : { toolCalls: [...toolCalls], usage };
}

/** The mock ignores tool choices: it is offered only the tools that a request allows. */
async function forward(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { tool_choice: choice, tools = [], ...body } = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    const wanted: string | undefined = choice?.function?.name ?? choice?.name;
    const allowed =
      choice === "none" || choice?.type === "none"
        ? []
        : tools.filter((tool: Named) => wanted === undefined || (tool.function?.name ?? tool.name) === wanted);
    const answer = await fetch(`${url}${request.url}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer k", "x-api-key": "k" },
      body: JSON.stringify({ ...body, ...(allowed.length === 0 ? {} : { tools: allowed }) }),
    });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    for await (const chunk of answer.body ?? []) response.write(chunk);
    response.end();
  } catch {
    response.destroy();
  }
}

interface Named {
  readonly name?: string;
  readonly function?: { readonly name: string };
}
