import type { Architecture } from "./rules.ts";

const foundation = ["session", "internal"];
const storage = ["stores", ...foundation];
const loop = ["agent", "tree", ...storage];
const parts = ["models", "tools", "sandboxes", "lifecycle", ...loop];

/** The import rules of the folders of src/. A new folder, driver or access to the environment gets a row here. */
export const architecture: Architecture = {
  mayImport: {
    internal: [],
    session: ["internal"],
    stores: foundation,
    tree: storage,
    agent: ["tree", ...storage],
    models: loop,
    tools: loop,
    sandboxes: ["tools", ...loop],
    lifecycle: loop,
    // The door of what shapes a request, which three folders know.
    context: ["models", ...loop],
    group: parts,
    import: storage,
    export: ["import", "tree", ...storage],
    // The prices of models, for what a run under another framework has spent.
    interop: ["export", "models", ...loop],
    workers: ["group", ...parts],
    // Tools that show sessions to other programs, and hand them over.
    "mcp-server": ["export", "interop", ...parts],
    http: ["export", "group", "interop", "mcp-server", "workers", ...parts],
    testing: ["models", "sandboxes", ...loop],
    cli: ["index", "http", "export", "group", "interop", "mcp-server", "testing", "workers", ...parts],
    // src/index.ts, the main entry point: it must not load a server, a program or a test.
    index: ["export", "group", ...parts],
  },
  drivers: {
    libsql: "src/stores/sqlite/",
    "node:sqlite": "src/stores/sqlite/",
    postgres: "src/stores/postgres/",
    redis: "src/stores/redis/",
    aws4fetch: "src/stores/blobs/",
    bullmq: "src/workers/",
    pg: "src/workers/",
    "gpt-tokenizer": "src/agent/",
    "@opentelemetry/api": "src/agent/",
    openai: "src/models/openai/",
    "@anthropic-ai/sdk": "src/models/anthropic/",
    "@ai-sdk/provider": "src/models/ai-sdk/",
    "@modelcontextprotocol/sdk": "src/tools/mcp/",
    "@alibaba-group/opensandbox": "src/sandboxes/opensandbox/",
    "@standard-schema/spec": "src/agent/",
    "@agentclientprotocol/sdk": "src/cli/acp/",
    ai: "src/http/ui/",
    "@ag-ui/core": "src/http/server/ag-ui/",
  },
  frameworks: {
    hono: ["src/http/server/", "src/http/hono/"],
    "@hono/node-server": ["src/http/server/"],
    zod: ["src/http/server/"],
    "@nestjs/common": ["src/http/nest/"],
    "@langchain/core": ["src/interop/langgraph/"],
    "@langchain/langgraph-checkpoint": ["src/interop/langgraph/"],
    "@openai/agents": ["src/interop/openai-agents/"],
  },
  loads: {
    "src/cli/options/load-module.ts": "agents, tools and the config of the user who starts a program",
  },
  portable: { folder: "session", nodeModules: ["node:async_hooks"] },
  readsEnv: {
    "src/tree/home.ts": "the default directory, $SKEIN_HOME, and the default store, $SKEIN_STORE",
    "src/models/api-key.ts": "the default key of a model",
    "src/models/price-list.ts": "the default list of prices",
    "src/lifecycle/config-from-environment.ts": "the session config",
    "src/cli/hide-environment.ts": "what must not be read by commands",
    "src/interop/formats/program-home.ts": "where other programs keep their sessions",
    "src/sandboxes/local/host-environment.ts": "what a shell needs to find its programs",
  },
  readsArgv: {
    "src/cli/": "the only programs",
  },
};
