import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import type { ModelReply } from "../../src/agent/model/model.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { inProcessQueue, startWorker } from "../../src/workers/index.ts";
import { gate } from "../http/runs-agents.ts";

test("a user has a limited number of concurrent runs on all workers of a store, and all of them run in the end", async () => {
  const directory = await mkdtemp(join(tmpdir(), "skein-limits-"));
  const url = `sqlite:${join(directory, "skein.db")}`;
  const [begun, hold] = [[] as string[], gate()];
  let [now, most] = [0, 0];
  const model = {
    provider: "test",
    id: "counting",
    async complete({ messages }: { readonly messages: readonly { readonly content: unknown }[] }): Promise<ModelReply> {
      begun.push(String(messages.at(-1)?.content));
      now += 1;
      most = Math.max(most, now);
      await hold.opened;
      now -= 1;
      return { role: "assistant", content: "Done." };
    },
  };
  const agent = createAgent({ name: "helper", prompt: "", model, builtInTools: false });
  // Each has a separate store and queue, as on three machines.
  const fleet = await Promise.all(
    [1, 2, 3].map(async () => ({ store: await openStore(url), queue: inProcessQueue() })),
  );
  onTestFinished(async () => {
    for (const { store } of fleet) await store.close();
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  const [first] = fleet.map(({ store }) => new SessionManager({ store }));
  const manager = first as SessionManager;
  const ids: string[] = [];
  for (const userId of ["ann", "ann", "ann", "ann", "ann", "ann", "bob"]) {
    const { sessionId } = await manager.create({ userId });
    await manager.request(sessionId, { agent: "helper", input: userId });
    ids.push(sessionId);
  }
  const workers = await Promise.all(
    fleet.map(({ store, queue }) =>
      startWorker({ manager: new SessionManager({ store }), queue, agents: [agent], maxRunsPerUser: 2, sweepMs: 100 }),
    ),
  );
  onTestFinished(async () => {
    hold.open();
    await Promise.all(workers.map((worker) => worker.close({ drainMs: 1000 })));
  });
  await expect.poll(() => begun.toSorted()).toEqual(["ann", "ann", "bob"]);
  expect(most).toBe(3);
  hold.open();
  const open = async () =>
    (await Promise.all(ids.map((id) => manager.head(id)))).flatMap((head) => head?.openRuns ?? []);
  await expect.poll(open).toEqual([]);
  expect(begun.toSorted()).toEqual([...Array(6).fill("ann"), "bob"]);
});
