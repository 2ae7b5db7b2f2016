// Makes the values whose methods callers use, for call-everything.mjs. Each call makes a new value, since a method may close it.
import { createAgent, createTree, openManager, openStore, Session } from "skein";
import { createClient } from "skein/client";
import { openSessionWriter } from "skein/files";
import { GroupSession, RoleIsolation } from "skein/group";
import { BranchManager, CheckpointManager, HookRunner, SessionContext, SessionEvents } from "skein/lifecycle";
import { SessionRegistry } from "skein/session";
import { createServer } from "skein/http";
import { inProcessQueue } from "skein/workers";

const agent = createAgent({ name: "helper", prompt: "You help.", model: "offline/offline", builtInTools: false });
const url = "http://127.0.0.1:1";

/** A manager whose store holds the session "wrong", which the calls name. */
async function managed() {
  const manager = await openManager({ store: "memory:" });
  await manager.create({ id: "wrong", userId: "local" });
  return manager;
}

/** @type {Record<string, () => Promise<object>>} */
export const makers = {
  manager: managed,
  store: async () => (await managed()).store,
  tree: async () => createTree(await openStore("memory:"), { userId: "local" }),
  agent: async () => agent,
  session: async () => Session.fromUserMessage("Hi."),
  transcript: async () => Session.fromUserMessage("Hi.").transcript,
  run: async () => (await openManager({ store: "memory:" })).run(agent, "Hi."),
  group: async () => new GroupSession({ manager: await openManager({ store: "memory:" }) }),
  roles: async () => new RoleIsolation(),
  branches: async () => new BranchManager((await managed()).store),
  checkpoints: async () => new CheckpointManager((await managed()).store),
  context: async () => new SessionContext(await managed()),
  events: async () => new SessionEvents(),
  hooks: async () => new HookRunner([], () => {}),
  registry: async () => new SessionRegistry(),
  writer: async () => openSessionWriter(Session.fromUserMessage("Hi.")),
  server: async () => createServer({ manager: await managed(), agents: [agent] }),
  queue: async () => inProcessQueue(),
  client: async () => createClient({ url }),
  "client.sessions": async () => createClient({ url }).sessions,
  "client.runs": async () => createClient({ url }).runs,
  "client.checkpoints": async () => createClient({ url }).checkpoints,
  "client.users": async () => createClient({ url }).users,
};
