import { type BaseEvent, HttpAgent, type Message } from "@ag-ui/client";
import { ANN, type RunServer } from "./runs-server.ts";

/** A stock client of AG-UI, and the events that it received. */
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

/** Sends a message, and reads the answer. */
export async function say(agent: HttpAgent, content: string, id: string = crypto.randomUUID()): Promise<void> {
  agent.addMessage({ id, role: "user", content });
  await agent.runAgent();
}

/** The types of the received events. */
export const types = (told: readonly BaseEvent[]): string[] => told.map(({ type }) => type);

/** The texts of messages; messages of the model with their calls. */
export const shown = (messages: readonly Message[]): string[] =>
  messages.map((message) => {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    const names = calls.map(({ function: { name, arguments: input } }) => `[${name} ${input}]`);
    return `${message.role}: ${[message.content ?? "", ...names].join("")}`;
  });

/** The thread as the server sends it to a client without any state. */
export async function stored(server: RunServer, threadId: string): Promise<Message[]> {
  const { agent } = clientOf(server, threadId);
  await agent.runAgent();
  return agent.messages;
}

/** Removes properties with the value undefined. */
export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** Answers all open questions; null withdraws them. */
export const answer = (agent: HttpAgent, payload: object | null): Parameters<HttpAgent["runAgent"]>[0] => ({
  resume: agent.pendingInterrupts.map(({ id }) =>
    payload === null ? { interruptId: id, status: "cancelled" } : { interruptId: id, status: "resolved", payload },
  ),
});
