import { join } from "node:path";
import { SkeinSaver } from "skein/langgraph";
import { messageText } from "../message-of.ts";
import {
  compileGraph,
  type Graph,
  type GraphModule,
  loadGraph,
  type MessagesModule,
  messagesOf,
  ownGraph,
  turnOf,
} from "./langgraph-graph.ts";
import { loadInstalled } from "./load-installed.ts";
import { settleFiles } from "../settle-files.ts";
import { openStoreOf } from "../store-kind.ts";
import type { Conversation, Peer } from "./peer.ts";

const installation = "langgraph";
const config = { configurable: { thread_id: "a-thread", checkpoint_ns: "" } };

interface Checkpoint {
  readonly id: string;
  readonly channel_values: Record<string, unknown>;
}

interface Saver {
  put(config: object, checkpoint: object, metadata: object, versions: object): Promise<object>;
  putWrites(config: object, writes: readonly (readonly [string, unknown])[], task: string): Promise<void>;
  getTuple(config: object): Promise<{ readonly checkpoint: Checkpoint } | undefined>;
}

interface SqliteSaver extends Saver {
  readonly db: { close(): void; pragma(text: string): unknown };
}

interface SaverModule {
  readonly SqliteSaver: { fromConnString(path: string): SqliteSaver };
}

/** Opens a checkpointer in a folder. */
interface OpenSaver {
  readonly saver: Saver;
  settle(): Promise<void>;
  close(): Promise<void>;
}

/** LangGraph with one of its checkpointers. */
interface Setup {
  readonly module: Modules;
  open(folder: string): Promise<OpenSaver>;
}

interface CheckpointModule {
  emptyCheckpoint(): Checkpoint;
  uuid6(clock: number): string;
}

interface Modules extends GraphModule, CheckpointModule, MessagesModule {}

const invoked = "A turn is one `invoke`, which loads the state, runs the graph and saves it";

const alone =
  "A turn is `getTuple`, `putWrites` and `put` of a state whose messages have grown by the turn, without a graph";

/** A graph with one node that replies, and the SQLite checkpointer, as in LangGraph's guide. */
export const langgraphPeer: Peer = {
  label: "LangGraph, StateGraph + SqliteSaver",
  installation,
  note: `${invoked}; the history is put there in one step.`,
  turnsEachRound: { small: 1, large: 1 },
  open: (folder) => openGraph(withSqliteSaver(), folder, plain),
};

/** The same with the experimental channel that only saves changes. */
export const langgraphDeltaPeer: Peer = {
  label: "LangGraph, StateGraph + SqliteSaver, delta channel",
  installation,
  note: "The delta channel is experimental; a turn is one `invoke`, which loads the state, too.",
  turnsEachRound: { small: 1, large: 1 },
  open: (folder) => openGraph(withSqliteSaver(), folder, delta),
};

/** The same without a checkpointer: the cost of a long message list in LangGraph itself. */
export const langgraphBarePeer: Peer = {
  label: "LangGraph, StateGraph without a checkpointer",
  installation: null,
  note: "The raw limit of a graph: the program keeps the messages in memory and gives all of them to `invoke`.",
  turnsEachRound: { small: 10, large: 10 },
  open: () => openBareGraph(),
};

/** Only the checkpointer: the cost of loading the state, and of saving it with one more turn. */
export const langgraphSaverPeer: Peer = {
  label: "LangGraph, SqliteSaver alone",
  installation,
  note: `${alone}.`,
  turnsEachRound: { small: 2, large: 2 },
  open: (folder) => openSaver(withSqliteSaver(), folder),
};

/** The same graph on a session. */
export const skeinSaverPeer: Peer = {
  label: "LangGraph, StateGraph + SkeinSaver on sqlite",
  installation: null,
  note: `${invoked}; what LangGraph itself does with a long list of messages is in it.`,
  turnsEachRound: { small: 10, large: 10 },
  open: (folder) => openGraph(withSkeinSaver(), folder, plain),
};

/** Only our saver. */
export const skeinSaverAlonePeer: Peer = {
  label: "LangGraph, SkeinSaver alone, on sqlite",
  installation: null,
  note: `${alone}.`,
  turnsEachRound: { small: 10, large: 10 },
  open: (folder) => openSaver(withSkeinSaver(), folder),
};

const plain = (module: GraphModule): unknown => module.MessagesAnnotation;
const delta = (module: GraphModule): unknown => new module.StateSchema({ messages: module.MessagesDeltaValue });

async function withSqliteSaver(): Promise<Setup> {
  const graph = await loadGraph(installation);
  const { SqliteSaver } = await loadInstalled<SaverModule>(installation, "@langchain/langgraph-checkpoint-sqlite");
  const checkpoint = await loadInstalled<CheckpointModule>(installation, "@langchain/langgraph-checkpoint");
  return {
    module: { ...graph, ...checkpoint },
    async open(folder) {
      const saver = SqliteSaver.fromConnString(join(folder, "langgraph.db"));
      return {
        saver,
        settle: async () => void saver.db.pragma("wal_checkpoint(TRUNCATE)"),
        close: async () => saver.db.close(),
      };
    },
  };
}

async function withSkeinSaver(): Promise<Setup> {
  const checkpoint = (await import("@langchain/langgraph-checkpoint")) as unknown as CheckpointModule;
  return {
    module: { ...(await ownGraph()), ...checkpoint },
    async open(folder) {
      const store = await openStoreOf("sqlite", folder);
      const saver = new SkeinSaver(store) as unknown as Saver;
      return { saver, settle: () => settleFiles("sqlite", folder), close: () => store.close() };
    },
  };
}

async function openGraph(
  setup: Promise<Setup>,
  folder: string,
  schemaOf: (module: GraphModule) => unknown,
): Promise<Conversation> {
  const { module, open } = await setup;
  const opened = await open(folder);
  let replyTo = 0;
  const schema = schemaOf(module);
  const compile = (saver: Saver): Graph =>
    compileGraph(module, { schema, checkpointer: saver, replyTo: () => replyTo });
  const graph = compile(opened.saver);
  return {
    async fill(turns) {
      await graph.invoke({ messages: messagesOf(module, turns).slice(0, -1) }, config);
    },
    async turn(index) {
      replyTo = index;
      await graph.invoke({ messages: [new module.HumanMessage(messageText(index * 2))] }, config);
    },
    settle: opened.settle,
    close: opened.close,
    async readContext() {
      const again = await open(folder);
      const { values } = await compile(again.saver).getState(config);
      await again.close();
      return values.messages.length;
    },
  };
}

async function openBareGraph(): Promise<Conversation> {
  const module = await ownGraph();
  let replyTo = 0;
  let messages: readonly object[] = [];
  const graph = compileGraph(module, { schema: plain(module), replyTo: () => replyTo });
  return {
    async fill(turns) {
      messages = messagesOf(module, turns);
    },
    async turn(index) {
      replyTo = index;
      const input = { messages: [...messages, new module.HumanMessage(messageText(index * 2))] };
      ({ messages } = await graph.invoke(input, {}));
    },
    close: async () => {},
    readContext: async () => messages.length,
  };
}

async function openSaver(setup: Promise<Setup>, folder: string): Promise<Conversation> {
  const { module, open } = await setup;
  const opened = await open(folder);
  let last: object = config;
  let clock = 0;
  const put = async (messages: readonly object[]): Promise<void> => {
    const id = module.uuid6(clock++);
    const versions = { messages: clock };
    const checkpoint = {
      ...module.emptyCheckpoint(),
      id,
      channel_values: { messages },
      channel_versions: versions,
    };
    last = await opened.saver.put(last, checkpoint, { source: "loop", step: clock, parents: {} }, versions);
  };
  return {
    fill: (turns) => put(messagesOf(module, turns)),
    async turn(index) {
      const said = turnOf(module, index);
      const before = savedMessages(await opened.saver.getTuple(config));
      await opened.saver.putWrites(last, [["messages", said]], `task-${index}`);
      await put([...before, ...said]);
    },
    settle: opened.settle,
    close: opened.close,
    async readContext() {
      const again = await open(folder);
      const tuple = await again.saver.getTuple(config);
      await again.close();
      return savedMessages(tuple).length;
    },
  };
}

function savedMessages(tuple: Awaited<ReturnType<Saver["getTuple"]>>): readonly object[] {
  return (tuple?.checkpoint.channel_values["messages"] ?? []) as readonly object[];
}
