import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/http/client/index.ts";
import { makeDirectory } from "../moving/sample-store.ts";

test("npm start serves the studio with sample sessions, an agent that has tools, and the options that it is given", async () => {
  const script = fileURLToPath(new URL("../../scripts/start.mjs", import.meta.url));
  const given = ["--json", "--store", "memory:", "--port=0", "--workspace", await makeDirectory()];
  const env = { ...process.env, SKEIN_HOME: await makeDirectory() };
  const child = spawn(process.execPath, [script, ...given], { stdio: ["ignore", "pipe", "ignore"], env });
  onTestFinished(() => void child.kill("SIGTERM"));
  for await (const line of createInterface(child.stdout)) {
    const server = JSON.parse(line) as { url: string; token: string };
    const { url } = server;
    const client = createClient(server);
    await expect(createClient({ url }).catalogue()).rejects.toMatchObject({ status: 401 });
    expect(await (await fetch(url)).text()).toContain("Skein studio");
    expect((await client.catalogue()).agents[0]?.tools.length).toBeGreaterThan(3);
    const names = (await client.sessions.list()).items.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["Plan a trip", "Notes of a week", "Interrupted in the middle"]));
    return;
  }
  expect.unreachable("It ended before it listened.");
});
