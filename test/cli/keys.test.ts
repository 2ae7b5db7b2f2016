import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { skipBecause } from "../skip.ts";
import { createClient } from "../../src/http/client/index.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { openModelServer, wireFixture } from "../model-server.ts";
import { builtProgram } from "./run-skein.ts";

const KEY = "planted-1f9d0c7b2a";
/** Secrets in the environment of a program, under various names. */
const SECRETS = {
  OPENAI_API_KEY: KEY,
  ANTHROPIC_API_KEY: KEY,
  PGPASSWORD: KEY,
  DATABASE_URL: `postgres://ann:${KEY}@127.0.0.1/skein`,
  PLAIN_NAME: KEY,
};
/**
 * Searches for the key in its own environment and in that of every process that it may read. It prints little, as long
 * outputs are cut, and does not contain the key itself.
 */
const SNOOP = [
  "env | grep LANG",
  "echo looked at $(ls -d /proc/[0-9]* | wc -l)",
  "cat /proc/$PPID/environ /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' > seen.txt",
  `(env; cat seen.txt) | grep -a '${KEY.replace("1f9d", "[1]f9d")}' | sort -u`,
  "exit 0",
].join("\n");

const onLinux = (name: string, run: () => Promise<void>): void =>
  test(name, async (context) => {
    if (process.platform !== "linux") skipBecause(context, "only Linux shows the environment of a process as a file");
    await run();
  });

/** Starts the program with keys in its environment, in a workspace with a command that searches for them. */
async function startWithKeys(
  command: string,
  { args = [], variables = {} }: { readonly args?: readonly string[]; readonly variables?: NodeJS.ProcessEnv } = {},
) {
  const workspace = await makeDirectory();
  await writeFile(join(workspace, "snoop.sh"), SNOOP);
  const env = { PATH: await programsWithoutBubblewrap(), HOME: workspace, LANG: "C.UTF-8", ...SECRETS, ...variables };
  const given = [builtProgram(), command, "--json", "--workspace", workspace, "--ask", "never", "--store", "memory:"];
  const child = spawn(process.execPath, [...given, ...args], { env, stdio: ["pipe", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return { child, stderr: () => stderr };
}

/** A directory with all programs except the one that isolates commands, which would hide the keys. */
async function programsWithoutBubblewrap(): Promise<string> {
  const directory = await makeDirectory();
  for (const place of ["/usr/bin", "/bin"]) {
    for (const name of await readdir(place)) {
      if (name !== "bwrap") await symlink(join(place, name), join(directory, name)).catch(() => {});
    }
  }
  return directory;
}

onLinux("a command of the chat finds no key in the environment of any process that it may read", async () => {
  const { child, stderr } = await startWithKeys("chat");
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stdin.end("run sh snoop.sh\n");
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  // It warns that commands are not isolated, and not about keys.
  expect(stderr()).toMatch(/^\(node:\d+\) \[SKEIN_NOT_ISOLATED\] [^\n]*\n(?:\(Use [^\n]*\n)?$/);
  expect(stdout).toContain("looked at");
  expect(stdout).toContain("LANG=C.UTF-8");
  expect(stdout).not.toContain(KEY);
});

onLinux(
  "a command of the server finds no key either, although the server offers the models of a provider with a key",
  async () => {
    const { child } = await startWithKeys("serve", { args: ["--port", "0", "--agent", "assistant=offline"] });
    for await (const line of createInterface(child.stdout)) {
      const client = createClient(JSON.parse(line) as { url: string; token: string });
      expect((await client.catalogue()).models.map(({ id }) => id)).toContain("anthropic/claude-opus-5");
      const { id } = (await client.sessions.create()).header;
      const run = await client.runs.start(id, { input: "run sh snoop.sh" });
      const said = [];
      for await (const event of client.runs.events(id, run.runId)) said.push(JSON.stringify(event));
      expect(said.join("\n")).toContain("looked at");
      expect(said.join("\n")).not.toContain(KEY);
      return;
    }
    expect.unreachable("The server ended before it listened.");
  },
);

onLinux("the model is still asked with the key", async () => {
  await using server = await openModelServer({ body: wireFixture("openai", "chat-text.sse.txt") });
  const { child } = await startWithKeys("chat", {
    args: ["--model", "openai/gpt-4o-mini"],
    variables: { OPENAI_BASE_URL: `${server.url}/v1` },
  });
  child.stdin.end("Hello.\n");
  await once(child, "close");
  expect(server.asked.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${KEY}`]);
});
