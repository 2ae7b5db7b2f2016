import { expect, test } from "vitest";
import { createServer } from "../../src/http/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { CountedBackend } from "../counted-sandbox.ts";
import { callOf, calling, saying, toolOf } from "../sample-run.ts";
import { answering } from "./runs-agents.ts";
import { allOf, nextOf, openRunServer } from "./runs-server.ts";

/** Asks where it acts, and answers then. */
const acting = () =>
  answering(
    [calling(callOf("1", "act")), saying("Done.")],
    [toolOf("act", async (_args, { session }) => (await session.requireSandbox()).backend)],
  );

test("tools act at the server's place in sessions without their own, and it is released after each run", async () => {
  const backend = new CountedBackend();
  const { client, sessionId, manager } = await openRunServer({
    agents: { helper: acting() },
    place: { backend: backend.name, spec: "/work" },
  });
  const run = await client.runs.start(sessionId, { input: "Act." });
  await allOf(client, run);
  expect(backend.specs).toEqual([{ workingDir: "/work" }]);
  await expect.poll(() => backend.live.size).toBe(0);

  const own = new CountedBackend();
  const sandbox = { backend: own.name, spec: { workingDir: "/own" }, handleId: null };
  const { sessionId: placed } = await manager.create({ userId: "ann", sandbox });
  const second = await openRunServer({
    agents: { helper: acting() },
    place: { backend: backend.name, spec: "/work" },
    store: manager.store,
  });
  await allOf(second.client, await second.client.runs.start(placed, { input: "Act." }));
  expect([own.specs, backend.opens]).toEqual([[{ workingDir: "/own" }], 1]);
});

test("without a place, a tool that needs one gets an error, and the run continues", async () => {
  const { client, sessionId } = await openRunServer({ agents: { helper: acting() } });
  const run = await client.runs.start(sessionId, { input: "Act." });
  expect(await nextOf(client, run, "tool-finished")).toMatchObject({
    message: { isError: true },
  });
});

test("a place of an unregistered kind is refused before the server starts", async () => {
  const store = openMemoryStore();
  await expect(createServer({ store, place: { backend: "nowhere" } })).rejects.toMatchObject({
    code: "INVALID_OPTION",
  });
});
