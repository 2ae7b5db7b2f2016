import { type BaseEvent, HttpAgent, type Message } from "@ag-ui/client";
import { ANN, type RunServer } from "./runs-server.ts";

/** A client of AG-UI as it comes, and what it was told. */
export function clientOf(
  { url }: Pick<RunServer, "url">,
  threadId: string,
  init: { messages?: Message[]; state?: object; headers?: Record<string, string>; agent?: string } = {},
): { agent: HttpAgent; told: BaseEvent[] } {
  const { messages = [], state = {}, headers = { ...ANN }, agent: name = "helper" } = init;
  const agent = new HttpAgent({
    url: `${url}/agui/${name}`,
    threadId,
    headers,
    initialMessages: messages,
    initialState: state,
  });
  const told: BaseEvent[] = [];
  agent.subscribe({ onEvent: ({ event }) => void told.push(event) });
  return { agent, told };
}

/** Says something, and reads what comes of it. */
export async function say(agent: HttpAgent, content: string, id: string = crypto.randomUUID()): Promise<void> {
  agent.addMessage({ id, role: "user", content });
  await agent.runAgent();
}

/** What kinds of events there were. */
export const types = (told: readonly BaseEvent[]): string[] => told.map(({ type }) => type);

/** The texts of messages, those of a model with its calls. */
export const shown = (messages: readonly Message[]): string[] =>
  messages.map((message) => {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    const names = calls.map(({ function: { name, arguments: input } }) => `[${name} ${input}]`);
    return `${message.role}: ${[message.content ?? "", ...names].join("")}`;
  });

/** What the server says of a thread to a client that knows nothing. */
export async function stored(server: RunServer, threadId: string): Promise<Message[]> {
  const { agent } = clientOf(server, threadId);
  await agent.runAgent();
  return agent.messages;
}

/** A value without what is there and undefined. */
export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** One answer to all that is asked; null withdraws. */
export const answer = (agent: HttpAgent, payload: object | null): Parameters<HttpAgent["runAgent"]>[0] => ({
  resume: agent.pendingInterrupts.map(({ id }) =>
    payload === null ? { interruptId: id, status: "cancelled" } : { interruptId: id, status: "resolved", payload },
  ),
});
