import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { resumeSession, runSessionLoop } from "../../src/index.ts";
import { scripted } from "../../src/models/index.ts";
import { nextEvent, resultsOf, shortly, toolOf } from "../sample-run.ts";
import { makeDirectory } from "./jsonl-support.ts";
import { programPath } from "./program-support.ts";

test("a run that waits for approval when its process is killed continues in another process with its messages", async () => {
  const path = join(await makeDirectory(), "run.jsonl");
  const child = spawn(process.execPath, [programPath("run-approval.mjs"), path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  expect(line).toBe("waiting");
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  expect(await gone).toEqual([null, "SIGKILL"]);

  const { user, agent } = await resumeSession(path);
  const paid: string[] = [];
  const pay = toolOf("pay", (_args, { callId }) => `paid ${paid.push(callId)}`, { needsApproval: () => true });
  const model = scripted(["Paid.", "Here it is."]);
  const run = runSessionLoop(user, agent, { model, tools: [pay], persist: path });
  const { approval } = await nextEvent(run, "approval-required");
  expect(approval.callId).toBe("1");
  expect(run.pendingApprovals).toEqual([approval]);
  await run.approve("1");
  const session = await run;
  expect(paid).toEqual(["1", "2"]);
  expect(resultsOf(session.transcript)).toEqual(["paid 1", "paid 2"]);
  expect(model.requests[0]?.messages[0]).toEqual({ role: "system", content: "Be careful." });
  expect(shortly(session.transcript).slice(-3)).toEqual([
    "assistant: Paid.",
    "user: And the receipt?",
    "assistant: Here it is.",
  ]);
});
