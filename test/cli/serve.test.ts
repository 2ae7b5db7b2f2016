import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { makeDirectory } from "../moving/sample-store.ts";
import { builtProgram, runHere, sampleStore } from "./run-skein.ts";

/** Starts the built program as a server, and gives it once it listens; it is gone after the test. */
async function startServer(...args: readonly string[]): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [builtProgram(), "serve", "--json", "--port", "0", ...args]);
  onTestFinished(() => void child.kill("SIGKILL"));
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  for await (const line of createInterface(child.stdout)) return { child, ...(JSON.parse(line) as { url: string }) };
  throw new Error(`The server ended before it listened: ${stderr}`);
}

test("serve listens, serves the sessions of its store, and ends with 0 on SIGTERM and on SIGINT", async () => {
  const store = await sampleStore();
  const ends = (["SIGTERM", "SIGINT"] as const).map(async (signal) => {
    const { child, url } = await startServer("--store", store);
    const answer = await fetch(`${url}/api/sessions/plan`);
    const closed = once(child, "close");
    child.kill(signal);
    return [answer.status, ((await answer.json()) as { header: { id: string } }).header.id, ...(await closed)];
  });
  expect(await Promise.all(ends)).toEqual([
    [200, "plan", 0, null],
    [200, "plan", 0, null],
  ]);
});

test("serve lets in who has a token of its file, and only them", async () => {
  const file = join(await makeDirectory(), "tokens");
  const token = async (...args: string[]) => {
    const { stdout } = await runHere(["token", "--json", "--token-file", file, ...args]);
    return (JSON.parse(stdout) as { token: string }).token;
  };
  const [ann, eve] = [await token("--user", "ann"), await token("--user", "eve")];
  const { url } = await startServer("--store", await sampleStore(), "--token-file", file);
  const status = async (given?: string) =>
    (
      await fetch(
        `${url}/api/sessions/plan`,
        given === undefined ? {} : { headers: { authorization: `Bearer ${given}` } },
      )
    ).status;
  expect(await Promise.all([status(ann), status(eve), status("skein_guess"), status()])).toEqual([200, 404, 401, 401]);
});

// biome-ignore format: a table reads best with one mistake to a line.
const refusals: [why: string, args: string[], code: number, said: RegExp][] = [
  ["another machine without tokens", ["--host", "0.0.0.0"], 2, /token/],
  ["a token file that is not there", ["--token-file", "/nowhere/tokens"], 2, /^The token file "\/nowhere\/tokens" cannot be read; check the path\.\n$/],
  ["an agent without a model", ["--agent", "clerk"], 2, /^--agent is "clerk"; give each agent once, as in clerk=offline\.\n$/],
  ["two agents of one name", ["--agent", "a=offline", "--agent", "a=offline"], 2, /^--agent is "a=offline"; give each agent once/],
  ["a model that nobody has", ["--agent", "a=nowhere/x"], 2, /nowhere/],
  ["a port that is no number", ["--port", "http"], 2, /^--port is "http"; give a whole number of 0 or more\.\n$/],
];

test.for(refusals)("serve refuses %s", async ([, args, code, said]) => {
  const ended = await runHere(["serve", "--store", "memory:", "--port", "0", ...args]);
  expect([ended.code, ended.stdout]).toEqual([code, ""]);
  expect(ended.stderr).toMatch(said);
});

test("serve says in one sentence that its port is taken, and stops when it is interrupted", async () => {
  const interrupt = new AbortController();
  let listening: (url: string) => void = () => {};
  const url = new Promise<string>((resolve) => {
    listening = resolve;
  });
  const first = runHere(["serve", "--store", "memory:", "--port", "0"], {
    signal: interrupt.signal,
    onOutput: (text) => listening(text),
  });
  const port = new URL(/http\S+(?=;)/.exec(await url)?.[0] ?? "").port;
  const second = await runHere(["serve", "--store", "memory:", "--port", port]);
  expect(second).toMatchObject({ code: expect.toSatisfy((code: number) => code > 0), stdout: "" });
  expect(second.stderr).toMatch(new RegExp(`^[^\\n]*${port}[^\\n]*\\n$`));
  interrupt.abort();
  expect(await first).toMatchObject({ code: 0, stderr: "" });
});
