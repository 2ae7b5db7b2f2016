import { join } from "node:path";
import { expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { scripted } from "../../src/models/scripted.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { makeDirectory } from "./jsonl-support.ts";
import { type Running, start } from "./program-support.ts";

async function says({ lines, more }: Running, line: string): Promise<void> {
  while (!lines().includes(line)) await more();
}

test("a run that is cancelled while a process claims it is over, though that process is killed right after its start", async () => {
  const url = `sqlite:${join(await makeDirectory(), "skein.db")}`;
  await using store = await openStore(url);
  const manager = new SessionManager({ store });
  const { sessionId } = await manager.create({ userId: "ann" });
  const { runId } = await manager.request(sessionId, { agent: "clerk", input: "Pay." });
  const claiming = start("run-cancelled-claim.mjs", [url, sessionId]);
  await says(claiming, "claims");
  expect(await manager.cancel(sessionId, { runId })).toBe(true);
  claiming.child.stdin.write("\n");
  await says(claiming, "claimed");
  claiming.child.kill("SIGKILL");
  await claiming.ended;
  const model = scripted(["Never said."]);
  const agent = createAgent({ name: "clerk", prompt: "", model, builtInTools: false });
  // The lease of a killed process ends with it in this store.
  await expect.poll(() => store.leaseOf(sessionId)).toBeNull();
  expect(await manager.recover(sessionId, { clerk: agent })).toBeNull();
  expect([(await manager.head(sessionId))?.openRuns, model.requests]).toEqual([[], []]);
});
