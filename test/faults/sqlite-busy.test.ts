import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { inProcessQueue, startWorker } from "../../src/workers/index.ts";
import { modelOf, saying } from "../sample-run.ts";
import { idle, phasesOf } from "../workers/fleet-support.ts";
import { makePath, openStore } from "./sqlite-support.ts";

/** Longer than an append waits for a lock, and shorter than two do. */
const LOCKED_MS = 7000;

const lock = `
  const Database = require("libsql");
  const database = new Database(process.argv[1]);
  database.exec("BEGIN IMMEDIATE");
  process.stdout.write("locked");
  setTimeout(() => database.exec("ROLLBACK"), ${LOCKED_MS});`;

/** Resolves when another process has locked a database, for a while. */
async function lockElsewhere(path: string): Promise<void> {
  const child = spawn(process.execPath, ["--eval", lock, path], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill());
  await once(child.stdout, "data");
}

test.for([
  ["longer", 2000],
  ["shorter", 30_000],
] as const)(
  "a run whose database another process locks for a %s time than its lease holds is taken up again and finishes",
  {
    timeout: 60_000,
  },
  async ([, leaseMs]) => {
    const path = await makePath();
    const store = await openStore(path);
    const manager = new SessionManager({ store });
    let asked = 0;
    const model = modelOf(async () => {
      asked += 1;
      if (asked === 1) await lockElsewhere(path);
      return saying("Done.");
    });
    const agents = [createAgent({ name: "helper", prompt: "", model, builtInTools: false })];
    const init = { manager, agents, queue: inProcessQueue(), leaseMs, sweepMs: 200, onError: () => {} };
    const worker = await startWorker(init);
    onTestFinished(() => worker.close({ drainMs: 0 }));
    const { sessionId } = await manager.create({ userId: "ann" });
    await manager.request(sessionId, { agent: "helper", input: "Go." });
    await idle(store, sessionId, 40_000);
    expect(await phasesOf(store, sessionId)).toEqual(["started", "started", "finished"]);
    expect(asked).toBe(2);
  },
);
