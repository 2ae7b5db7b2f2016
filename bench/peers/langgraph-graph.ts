import { messageText } from "../message-of.ts";
import { loadInstalled } from "./load-installed.ts";

/** A compiled graph, as far as the benchmark uses it. */
export interface Graph {
  invoke(
    input: { readonly messages: readonly object[] },
    config: object,
  ): Promise<{ readonly messages: readonly object[] }>;
  getState(config: object): Promise<{ readonly values: { readonly messages: readonly unknown[] } }>;
}

interface GraphBuilder {
  addNode(name: string, run: () => Promise<object>): GraphBuilder;
  addEdge(from: string, to: string): GraphBuilder;
  compile(options: { readonly checkpointer?: object }): Graph;
}

/** The exports of LangGraph that the benchmark uses. */
export interface GraphModule {
  readonly StateGraph: new (schema: unknown) => GraphBuilder;
  readonly StateSchema: new (fields: object) => unknown;
  readonly MessagesAnnotation: unknown;
  readonly MessagesDeltaValue: unknown;
  readonly START: string;
  readonly END: string;
}

type MessageClass = new (text: string) => object;

/** LangGraph's classes of messages. */
export interface MessagesModule {
  readonly HumanMessage: MessageClass;
  readonly AIMessage: MessageClass;
}

/** LangGraph as installed beside a checkpointer. */
export async function loadGraph(installation: string): Promise<GraphModule & MessagesModule> {
  const graph = await loadInstalled<GraphModule>(installation, "@langchain/langgraph");
  const messages = await loadInstalled<MessagesModule>(installation, "@langchain/core/messages");
  return { ...graph, ...messages };
}

/** LangGraph as installed in this project. */
export async function ownGraph(): Promise<GraphModule & MessagesModule> {
  const modules: unknown[] = await Promise.all([import("@langchain/langgraph"), import("@langchain/core/messages")]);
  return Object.assign({}, ...modules) as GraphModule & MessagesModule;
}

/** A graph with one node that replies, as in LangGraph's guide; `replyTo` returns the turn to reply to. */
export function compileGraph(
  module: GraphModule & MessagesModule,
  {
    schema,
    replyTo,
    ...options
  }: { readonly schema: unknown; readonly checkpointer?: object; readonly replyTo: () => number },
): Graph {
  return new module.StateGraph(schema)
    .addNode("model", async () => ({ messages: [new module.AIMessage(messageText(replyTo() * 2 + 1))] }))
    .addEdge(module.START, "model")
    .addEdge("model", module.END)
    .compile(options);
}

/** The messages of the given number of turns. */
export function messagesOf(module: MessagesModule, turns: number): object[] {
  return Array.from({ length: turns }, (_, index) => turnOf(module, index)).flat();
}

/** The user's message and the reply of one turn. */
export function turnOf({ HumanMessage, AIMessage }: MessagesModule, index: number): object[] {
  return [new HumanMessage(messageText(index * 2)), new AIMessage(messageText(index * 2 + 1))];
}
