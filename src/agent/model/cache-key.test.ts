import { expect, test } from "vitest";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { scripted } from "../../models/scripted.ts";
import { openMemoryStore } from "../../stores/memory/memory-store.ts";
import { createAgent } from "../agent.ts";
import { promptCacheKey } from "./cache-key.ts";

test("the requests of a session and its forks have the same cache key, those of other sessions another", async () => {
  const model = scripted(Array.from({ length: 7 }, () => "ok"));
  const agent = createAgent({ prompt: "Be brief.", model });
  const manager = new SessionManager({ store: openMemoryStore() });
  const { sessionId: first } = await manager.create({ userId: "ada" });
  const { sessionId: other } = await manager.create({ userId: "ada" });
  await manager.run(first, agent, "one");
  await manager.run(first, agent, "two");
  const { sessionId: fork } = await manager.fork(first, "b");
  await manager.run(fork, agent, "three");
  const { sessionId: second } = await manager.fork(fork, "c");
  await manager.run(second, agent, "four");
  await manager.run(other, agent, "five");
  await agent.run("six");
  const keys = model.requests.map(({ cacheKey }) => cacheKey);
  const key = promptCacheKey(first, "ada");
  expect(keys).toEqual([key, key, key, key, promptCacheKey(other, "ada"), undefined]);
});
