import { expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { scripted } from "../../src/models/scripted.ts";
import { allOf, openRunServer } from "./runs-server.ts";

const INPUT = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "One and one?" },
  { role: "assistant", content: "Two." },
  { role: "user", content: [{ type: "text", text: "And two more?" }] },
] as const;

test("a run is requested with messages over HTTP: of all roles in a new session, of users only after that", async () => {
  const model = scripted(["Four.", "Six."]);
  const helper = createAgent({ prompt: "You help.", model });
  const { client, sessionId, manager } = await openRunServer({ agents: { helper } });
  const { runId } = await client.runs.start(sessionId, { input: INPUT, runId: "first" });
  await allOf(client, { sessionId, runId });
  const said = (await manager.getState(sessionId))?.turns.map(({ role }) => role);
  expect(said).toEqual(["system", "user", "assistant", "user", "assistant"]);
  expect(model.requests[0]?.messages.slice(1).map(({ content }) => content)).toEqual(
    INPUT.map(({ content }) => content),
  );
  // A repeated request is the same run, even if messages were added in the meantime.
  expect(await client.runs.start(sessionId, { input: INPUT, runId: "first" })).toMatchObject({ runId });
  await expect(client.runs.start(sessionId, { input: INPUT })).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining("accepts only user messages"),
  });
  await allOf(client, await client.runs.start(sessionId, { input: [{ role: "user", content: "And two more?" }] }));
  const turns = (await manager.getState(sessionId))?.turns ?? [];
  expect(turns.slice(5).map(({ role, content }) => [role, content])).toEqual([
    ["user", "And two more?"],
    ["assistant", "Six."],
  ]);
});

test("messages with calls, results or fields of another kind are refused over HTTP, and nothing is stored", async () => {
  const helper = createAgent({ prompt: "You help.", model: scripted([]) });
  const { client, sessionId, manager } = await openRunServer({ agents: { helper } });
  const wrong = [
    [{ role: "tool", content: "42", toolCallId: "c", name: "add" }],
    [{ role: "assistant", content: "x", toolCalls: [{ id: "c", name: "add", arguments: "{}" }] }],
    [{ role: "user", content: "x", by: "root" }],
    [{ role: "user" }],
    [
      { type: "text", text: "x" },
      { role: "user", content: "x" },
    ],
  ];
  for (const input of wrong)
    await expect(client.runs.start(sessionId, { input } as never)).rejects.toMatchObject({ status: 400 });
  expect(await manager.head(sessionId)).toMatchObject({ openRuns: [], messageCount: 0 });
});
