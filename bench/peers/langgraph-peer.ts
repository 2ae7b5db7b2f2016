import { join } from "node:path";
import { messageText } from "../message-of.ts";
import {
  compileGraph,
  type Graph,
  type GraphModule,
  loadGraph,
  type MessagesModule,
  messagesOf,
  turnOf,
} from "./langgraph-graph.ts";
import { loadInstalled } from "./load-installed.ts";
import type { Conversation, Peer } from "./peer.ts";

const installation = "langgraph";
const config = { configurable: { thread_id: "a-thread", checkpoint_ns: "" } };

interface Checkpoint {
  readonly id: string;
  readonly channel_values: Record<string, unknown>;
}

interface Saver {
  readonly db: { close(): void; pragma(text: string): unknown };
  put(config: object, checkpoint: object, metadata: object, versions: object): Promise<object>;
  getTuple(config: object): Promise<{ readonly checkpoint: Checkpoint } | undefined>;
}

interface SaverModule {
  readonly SqliteSaver: { fromConnString(path: string): Saver };
}

interface CheckpointModule {
  emptyCheckpoint(): Checkpoint;
  uuid6(clock: number): string;
}

interface Loaded extends GraphModule, SaverModule, CheckpointModule, MessagesModule {}

/** A graph with one node that replies, and the SQLite checkpointer, as LangGraph's guide sets them up. */
export const langgraphPeer: Peer = {
  label: "LangGraph, StateGraph + SqliteSaver",
  installation,
  note: "A turn is one `invoke`, which loads the state, runs the graph and saves it; the history is put there in one step.",
  turnsEachRound: { small: 1, large: 1 },
  open: (folder) => openGraph(folder, (module) => module.MessagesAnnotation),
};

/** The same with the experimental channel that saves what changed only. */
export const langgraphDeltaPeer: Peer = {
  label: "LangGraph, StateGraph + SqliteSaver, delta channel",
  installation,
  note: "The delta channel is experimental; a turn is one `invoke`, which loads the state, too.",
  turnsEachRound: { small: 1, large: 1 },
  open: (folder) => openGraph(folder, (module) => new module.StateSchema({ messages: module.MessagesDeltaValue })),
};

/** The checkpointer on its own: what it costs to save a state that has one more turn. */
export const langgraphPutPeer: Peer = {
  label: "LangGraph, SqliteSaver.put alone",
  installation,
  note: "A turn is one `put` of a checkpoint whose messages channel has grown by the turn.",
  turnsEachRound: { small: 2, large: 2 },
  open: openSaver,
};

async function openGraph(folder: string, schemaOf: (module: GraphModule) => unknown): Promise<Conversation> {
  const module = await loadAll();
  const path = join(folder, "langgraph.db");
  const checkpointer = module.SqliteSaver.fromConnString(path);
  let replyTo = 0;
  const schema = schemaOf(module);
  const compile = (saver: Saver): Graph =>
    compileGraph(module, { schema, checkpointer: saver, replyTo: () => replyTo });
  const graph = compile(checkpointer);
  return {
    async fill(turns) {
      await graph.invoke({ messages: messagesOf(module, turns).slice(0, -1) }, config);
    },
    async turn(index) {
      replyTo = index;
      await graph.invoke({ messages: [new module.HumanMessage(messageText(index * 2))] }, config);
    },
    settle: () => settle(checkpointer),
    close: async () => checkpointer.db.close(),
    async readContext() {
      const saver = module.SqliteSaver.fromConnString(path);
      const { values } = await compile(saver).getState(config);
      saver.db.close();
      return values.messages.length;
    },
  };
}

async function openSaver(folder: string): Promise<Conversation> {
  const module = await loadAll();
  const path = join(folder, "langgraph.db");
  const saver = module.SqliteSaver.fromConnString(path);
  let messages: object[] = [];
  let last: object = config;
  let clock = 0;
  const put = async (): Promise<void> => {
    const id = module.uuid6(clock++);
    const checkpoint = { ...module.emptyCheckpoint(), id, channel_values: { messages } };
    last = await saver.put(last, checkpoint, { source: "loop", step: clock, parents: {} }, {});
  };
  return {
    fill(turns) {
      messages = messagesOf(module, turns);
      return put();
    },
    turn(index) {
      messages = [...messages, ...turnOf(module, index)];
      return put();
    },
    settle: () => settle(saver),
    close: async () => saver.db.close(),
    async readContext() {
      const opened = module.SqliteSaver.fromConnString(path);
      const tuple = await opened.getTuple(config);
      opened.db.close();
      const saved = tuple?.checkpoint.channel_values["messages"] as readonly unknown[] | undefined;
      return saved?.length ?? 0;
    },
  };
}

async function settle({ db }: Saver): Promise<void> {
  db.pragma("wal_checkpoint(TRUNCATE)");
}

async function loadAll(): Promise<Loaded> {
  const graph = await loadGraph(installation);
  const saver = await loadInstalled<SaverModule>(installation, "@langchain/langgraph-checkpoint-sqlite");
  const checkpoint = await loadInstalled<CheckpointModule>(installation, "@langchain/langgraph-checkpoint");
  return { ...graph, ...saver, ...checkpoint };
}
