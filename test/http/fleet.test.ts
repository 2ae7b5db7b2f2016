import { hostname } from "node:os";
import { expect, test } from "vitest";
import { answering, gate, pausing } from "./runs-agents.ts";
import { nextOf, openRunServer, type RunServer } from "./runs-server.ts";

/** A server whose worker has a run of ann and one of bob; each user also has a run in the queue and one for later. */
async function openBusyServer(later: string): Promise<RunServer & { readonly ids: Record<string, string> }> {
  const hold = gate();
  const replies = Array.from({ length: 4 }, () => pausing(["Said", " on."], hold));
  const server = await openRunServer({ agents: { helper: answering(replies) } });
  const ids: Record<string, string> = {};
  for (const userId of ["ann", "bob"]) {
    const client = server.as(userId);
    const { id } = (await client.sessions.create({ name: `The secret of ${userId}` })).header;
    ids[userId] = id;
    await nextOf(client, await client.runs.start(id, { input: `Words of ${userId}.` }), "text-delta");
    await client.runs.start(id, { input: `More of ${userId}.`, ifBusy: "enqueue" });
    const another = (await client.sessions.create()).header.id;
    await client.runs.start(another, { input: `Later, ${userId}.`, notBefore: later });
  }
  // Workers announce their runs on a timer and on request.
  await expect.poll(async () => (await server.client.fleet()).workers[0]?.active).toBe(2);
  return { ...server, ids };
}

test("an administrator sees the server's own worker, all of its runs, and all waiting runs", async () => {
  const later = new Date(Date.now() + 3_600_000).toISOString();
  const { as, ids } = await openBusyServer(later);
  const fleet = await as("root").fleet();
  expect(fleet.workers).toEqual([
    {
      name: `${hostname()}:${process.pid}`,
      host: hostname(),
      agents: ["helper"],
      groups: [],
      concurrency: 1000,
      active: 2,
      runs: ["ann", "bob"].map((userId) => ({
        sessionId: ids[userId],
        userId,
        runner: "helper",
        runId: expect.any(String),
        since: expect.stringMatching(/Z$/),
      })),
    },
  ]);
  const waiting = fleet.requested.items.map(({ userId, agent, notBefore }) => [userId, agent, notBefore]);
  expect(waiting.sort()).toEqual([
    ["ann", "helper", null],
    ["ann", "helper", later],
    ["bob", "helper", null],
    ["bob", "helper", later],
  ]);
  expect(fleet.interrupted).toEqual({ items: [], next: null });
});

test("a user sees how many runs the workers have, and of the runs only their own", async () => {
  const { as, ids } = await openBusyServer(new Date(Date.now() + 3_600_000).toISOString());
  const fleet = await as("ann").fleet();
  expect(fleet).toMatchObject({ waiting: (await as("root").fleet()).waiting });
  expect(fleet.workers).toMatchObject([
    { name: null, host: null, concurrency: 1000, active: 2, runs: [{ sessionId: ids.ann, userId: "ann" }] },
  ]);
  expect(fleet.requested.items.map(({ userId }) => userId)).toEqual(["ann", "ann"]);
  for (const secret of ["bob", ids.bob as string]) expect(JSON.stringify(fleet)).not.toContain(secret);
});

test("waiting runs of at most fifty sessions are listed, and all of them are counted", async () => {
  const { as, manager } = await openRunServer({ agents: { helper: answering([]) }, init: { recoverMs: 0 } });
  for (let index = 0; index < 60; index++) {
    const { sessionId } = await manager.create({ userId: "ann" });
    // The queue is not notified, so the request waits.
    await manager.request(sessionId, { agent: "helper", input: "Hi." });
  }
  const fleet = await as("ann").fleet();
  expect(fleet.requested.items).toHaveLength(50);
  expect(fleet.requested.next).not.toBeNull();
  expect(fleet.waiting).toBe(60);
});
