import { readUIMessageStream, type UIMessage } from "ai";
import { expect, test } from "vitest";
import { createAgent } from "../../agent/agent.ts";
import type { SessionRun } from "../../agent/session-run.ts";
import { defineTool } from "../../agent/tools/define-tool.ts";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { scripted } from "../../models/index.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { toUIMessages } from "./to-ui-messages.ts";
import { toUIMessageStream, type UIMessageStreamOptions } from "./to-ui-message-stream.ts";

async function read(run: SessionRun, options: UIMessageStreamOptions, message?: UIMessage): Promise<UIMessage> {
  const given = message === undefined ? {} : { message };
  let last: UIMessage = { id: "", role: "assistant", parts: [] };
  for await (const next of readUIMessageStream({ stream: toUIMessageStream(run, options), ...given })) {
    last = structuredClone(next);
  }
  return last;
}

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: { type: "object" },
  needsApproval: true,
  execute: () => "paid",
});

/** A run of a session that calls `pay` and is done then. */
async function startPaying(
  options: Parameters<SessionManager["run"]>[3] = {},
): Promise<{ manager: SessionManager; run: SessionRun }> {
  const model = scripted([
    {
      role: "assistant",
      content: "I pay.",
      toolCalls: [{ id: "1", name: "pay", arguments: "{}" }],
      stopReason: "tool_calls",
    },
    "Done.",
  ]);
  const agent = createAgent({ prompt: "Pay.", model, tools: [pay], builtInTools: false });
  const manager = new SessionManager({ store: openMemoryStore() });
  await manager.create({ userId: "ann", id: "s" });
  return { manager, run: manager.run("s", agent, "Pay!", options) };
}

test("a run of the library is streamed up to a question, continues after it, and matches its session", async () => {
  const { manager, run } = await startPaying();
  const asked = await read(run, {});
  const part = asked.parts.at(-1);
  if (part?.type !== "tool-pay" || part.state !== "approval-requested") throw new Error("Nothing was asked.");
  const { id } = part.approval;
  await run.approve(id);
  const answered = await read(run, { after: [id] }, asked);
  await run;
  const [, stored] = toUIMessages((await manager.getState("s"))?.turns ?? []);
  const texts = ({ parts }: UIMessage): unknown => parts.map((one) => ("text" in one ? one.text : one.type));
  expect(texts(answered)).toEqual(["step-start", "I pay.", "tool-pay", "step-start", "Done."]);
  expect(stored && texts(stored)).toEqual(texts(answered));
  expect(stored?.id).toBe(answered.id);
});

test("a reader that leaves stops nothing", async () => {
  const agent = createAgent({ prompt: "Talk.", model: scripted(["Hello."]), builtInTools: false });
  const run = agent.run("Hi.");
  await toUIMessageStream(run).cancel();
  expect((await run).text()).toBe("Hello.");
});

test("the stream of a run that has parked ends with its question", async () => {
  const { run } = await startPaying({ park: { afterMs: 0 } });
  await run;
  expect(run.status).toBe("parked");
  const { parts } = await read(run, {});
  expect(parts.at(-1)).toMatchObject({ type: "tool-pay", state: "approval-requested" });
});
