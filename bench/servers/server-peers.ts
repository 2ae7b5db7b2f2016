import { createHeader, type SessionStore, SessionTree } from "skein";
import { openPostgresStore } from "skein/postgres";
import { SkeinSaver } from "skein/langgraph";
import { openRedisStore } from "skein/redis";
import { messageOf, messageText } from "../message-of.ts";
import {
  compileGraph,
  type GraphModule,
  loadGraph,
  type MessagesModule,
  messagesOf,
  ownGraph,
} from "../peers/langgraph-graph.ts";
import { loadInstalled } from "../peers/load-installed.ts";
import type { ServerKind } from "./server-kind.ts";
import type { ServerConversations, ServerPeer } from "./server-peer.ts";

const TURN_NOTE =
  "A turn is one `invoke`, which loads the state, runs the graph and saves it; the history is put there in one step.";

interface PostgresSaverModule {
  readonly PostgresSaver: {
    fromConnString(url: string, options: { schema: string }): { setup(): Promise<void>; end(): Promise<void> };
  };
}

interface RedisSaverModule {
  readonly RedisSaver: { fromUrl(url: string): Promise<{ end(): Promise<void> }> };
}

interface ShallowSaverModule {
  readonly ShallowRedisSaver: { fromUrl(url: string): Promise<{ end(): Promise<void> }> };
}

type OpenStore = (url: string, place: string) => Promise<SessionStore>;

const openPostgres: OpenStore = (url, place) => openPostgresStore({ url, schema: place });
const openRedis: OpenStore = (url, place) => openRedisStore({ url, prefix: place });

/** All peers on a server. */
export const serverPeers: readonly ServerPeer[] = [
  skeinPeer("postgres", openPostgres),
  saverPeer("postgres", openPostgres),
  {
    label: "LangGraph, StateGraph + PostgresSaver",
    server: "postgres",
    installation: "langgraph-postgres",
    note: TURN_NOTE,
    // A late turn takes seconds.
    turnsEachRound: 1,
    open: openPostgresGraph,
  },
  skeinPeer("redis", openRedis),
  saverPeer("redis", openRedis),
  {
    label: "LangGraph, StateGraph + RedisSaver",
    server: "redis",
    installation: "langgraph-redis",
    note: TURN_NOTE,
    async open(url) {
      const { RedisSaver } = await loadInstalled<RedisSaverModule>("langgraph-redis", REDIS_PACKAGE);
      const saver = await RedisSaver.fromUrl(url);
      return conversationsOf(await loadGraph("langgraph-redis"), saver, () => saver.end());
    },
  },
  {
    label: "LangGraph, StateGraph + ShallowRedisSaver",
    server: "redis",
    installation: "langgraph-redis",
    note: "It keeps the last state of a conversation and no earlier one.",
    async open(url) {
      const { ShallowRedisSaver } = await loadInstalled<ShallowSaverModule>(
        "langgraph-redis",
        `${REDIS_PACKAGE}/shallow`,
      );
      const saver = await ShallowRedisSaver.fromUrl(url);
      return conversationsOf(await loadGraph("langgraph-redis"), saver, () => saver.end());
    },
  },
];

const REDIS_PACKAGE = "@langchain/langgraph-checkpoint-redis";

function skeinPeer(server: ServerKind, openStore: OpenStore): ServerPeer {
  return {
    label: `skein ${server}`,
    server,
    installation: null,
    async open(url) {
      const store = await openStore(url, `skein_bench_${process.pid}`);
      return {
        async begin() {
          const tree = await SessionTree.on(store, (await store.create(createHeader())).header.id);
          const turn = async (index: number): Promise<void> => {
            for (const position of [index * 2, index * 2 + 1]) await tree.appendMessage(messageOf(position));
          };
          return {
            turn,
            async fill(turns) {
              for (let index = 0; index < turns; index++) await turn(index);
            },
          };
        },
        [Symbol.asyncDispose]: () => store.close(),
      };
    },
  };
}

/** The same graph on a session of the server. */
function saverPeer(server: ServerKind, openStore: OpenStore): ServerPeer {
  return {
    label: `LangGraph, StateGraph + SkeinSaver on ${server}`,
    server,
    installation: null,
    note: TURN_NOTE,
    async open(url) {
      const store = await openStore(url, `skein_bench_${process.pid}`);
      return conversationsOf(await ownGraph(), new SkeinSaver(store), () => store.close());
    },
  };
}

async function openPostgresGraph(url: string): Promise<ServerConversations> {
  const installation = "langgraph-postgres";
  const name = "@langchain/langgraph-checkpoint-postgres";
  const { PostgresSaver } = await loadInstalled<PostgresSaverModule>(installation, name);
  const saver = PostgresSaver.fromConnString(url, { schema: `langgraph_bench_${process.pid}` });
  await saver.setup();
  return conversationsOf(await loadGraph(installation), saver, () => saver.end());
}

function conversationsOf(
  module: GraphModule & MessagesModule,
  checkpointer: object,
  close: () => Promise<void>,
): ServerConversations {
  let replyTo = 0;
  let threads = 0;
  const schema = module.MessagesAnnotation;
  const graph = compileGraph(module, { schema, checkpointer, replyTo: () => replyTo });
  return {
    async begin() {
      const config = { configurable: { thread_id: `bench-${process.pid}-${++threads}`, checkpoint_ns: "" } };
      return {
        async fill(turns) {
          await graph.invoke({ messages: messagesOf(module, turns).slice(0, -1) }, config);
        },
        async turn(index) {
          replyTo = index;
          await graph.invoke({ messages: [new module.HumanMessage(messageText(index * 2))] }, config);
        },
      };
    },
    [Symbol.asyncDispose]: close,
  };
}
