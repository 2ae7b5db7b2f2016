import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { entriesOf } from "./lifecycle-case.ts";
import { openIn, phasesIn, questionIn, saidIn } from "./requests-sample.ts";

async function place(): Promise<{ readonly directory: string; readonly store: SessionStore }> {
  const directory = await mkdtemp(join(tmpdir(), "skein-runs-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const store = await openSqliteStore({ path: join(directory, "skein.db") });
  onTestFinished(() => store.close());
  await new SessionManager({ store }).create({ userId: "ann", id: "s" });
  return { directory, store };
}

/** Starts a process that does one thing; `said` waits for its output. */
function start(...args: readonly string[]) {
  const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
  if (!existsSync(built)) throw new Error(`${built} is missing; run "npm run build" first, as "npm test" does.`);
  const program = fileURLToPath(new URL("./programs/runs.mjs", import.meta.url));
  const child = spawn(process.execPath, ["--no-warnings", program, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout.on("data", (data: Buffer) => {
    text += data.toString();
  });
  const said = async (line: string): Promise<void> => {
    while (!text.includes(line)) await once(child.stdout, "data");
  };
  const ended = once(child, "close").then(() => text.trim().split("\n"));
  return { child, said, ended };
}

test("of ten processes that request the same run concurrently and recover it, one runs it", async () => {
  const { directory, store } = await place();
  const processes = Array.from({ length: 10 }, () => start(directory, "together", "r"));
  await Promise.all(processes.map(({ said }) => said("ready")));
  for (const { child } of processes) child.stdin.end("go\n");
  const lines = await Promise.all(processes.map(({ ended }) => ended));
  const ends = lines.map((each) => each.at(-1)).sort();
  expect(ends).toEqual(["done finished", ...Array.from({ length: 9 }, () => "done nothing")]);
  expect(await saidIn(store, "s")).toEqual(["Go.", "Done."]);
  expect(await phasesIn(store, "s")).toEqual(["r started", "r finished"]);
  expect((await entriesOf(store, "s")).filter(({ type }) => type === "run_request")).toHaveLength(1);
});

test("one process asks, another runs, a third approves and a fourth cancels", async () => {
  const { directory, store } = await place();
  await start(directory, "request", "first").ended;
  const paying = start(directory, "recover", "paying");
  const question = await questionIn(store, "s");
  expect(await start(directory, "approve", question).ended).toEqual(["done undefined"]);
  expect(await paying.ended).toEqual(["running", "paid", "done finished"]);
  expect(await store.getEntry("s", `answer:${question}`)).toMatchObject({ by: "boss" });
  await start(directory, "request", "second").ended;
  const hanging = start(directory, "recover", "hanging");
  await hanging.said("running");
  expect(await start(directory, "cancel").ended).toEqual(["done true"]);
  expect(await hanging.ended).toEqual(["running", "done aborted"]);
  const phases = ["first started", "first finished", "second started", "second cancelled"];
  expect(await phasesIn(store, "s")).toEqual(phases);
});

test("a run parks in one process and continues in another after a third has answered", async () => {
  const { directory, store } = await place();
  await start(directory, "request", "r").ended;
  expect(await start(directory, "park").ended).toEqual(["running", "done parked"]);
  expect(await openIn(store, "s")).toEqual(["r parked"]);
  expect(await start(directory, "recover", "short").ended).toEqual(["done nothing"]);
  await start(directory, "approve", await questionIn(store, "s")).ended;
  expect(await start(directory, "recover", "short").ended).toEqual(["running", "paid", "done finished"]);
  expect(await phasesIn(store, "s")).toEqual(["r started", "r started", "r finished"]);
});

test("a run whose process was killed continues in another, under its id", async () => {
  const { directory, store } = await place();
  await start(directory, "request", "r").ended;
  const killed = start(directory, "recover", "hanging");
  await killed.said("running");
  killed.child.kill("SIGKILL");
  await killed.ended;
  expect(await start(directory, "recover", "short").ended).toEqual(["running", "done finished"]);
  expect(await phasesIn(store, "s")).toEqual(["r started", "r started", "r finished"]);
  expect(await saidIn(store, "s")).toEqual(["Go.", "Done."]);
});

test("a run with structured output continues in another process, which reads its schema from the log", async () => {
  const { directory, store } = await place();
  await start(directory, "output", "r").ended;
  const killed = start(directory, "recover", "wrong");
  await killed.said("told");
  killed.child.kill("SIGKILL");
  await killed.ended;
  expect((await start(directory, "recover", "right").ended).at(-1)).toBe('done finished {"prime":97}');
  expect((await entriesOf(store, "s")).at(-1)).toMatchObject({
    type: "run",
    phase: "finished",
    output: { prime: 97 },
  });
  expect((await saidIn(store, "s")).at(-1)).toBe('{"prime":97}');
});
