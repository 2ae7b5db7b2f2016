import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test, vi } from "vitest";
import { createClient } from "../../src/http/client/index.ts";
import { findLocalServer } from "../../src/http/index.ts";
import { skipBecause } from "../skip.ts";
import { builtProgram, runHere } from "./run-skein.ts";

/** An account without files. */
const NOBODY = 65_534;

interface Served {
  readonly child: ChildProcess;
  readonly line: string;
  /** The error output so far. */
  stderr(): string;
}

/** A private home, deleted after the test, in which servers are recorded. */
async function makeHome(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-own-"));
  // Accessible directories above it, so that only the permissions of the files themselves are tested.
  await chmod(directory, 0o755);
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await rm(directory, { recursive: true, force: true });
  });
  return join(directory, "home");
}

/** Starts the built program as a server, and returns its first line. */
async function serve(...args: readonly string[]): Promise<Served> {
  const env = { ...process.env, OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "" };
  const given = ["serve", "--store", "memory:", "--port", "0", ...args];
  const child = spawn(process.execPath, ["--no-warnings", builtProgram(), ...given], { env });
  onTestFinished(() => void child.kill("SIGKILL"));
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  for await (const line of createInterface(child.stdout)) return { child, line, stderr: () => stderr };
  throw new Error("The server ended before it listened.");
}

async function end({ child }: Served, signal: NodeJS.Signals): Promise<void> {
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
}

/** The output and the error output of a program under another account. */
function asNobody(program: string, ...args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(program, [...args], { uid: NOBODY, gid: NOBODY, cwd: "/", env: {} }, (_error, stdout, stderr) =>
      resolve({ stdout, stderr }),
    );
  });
}

test("serve prints its address with a token for its user, stores it in a private file, and deletes that at the end", async () => {
  const home = await makeHome();
  const served = await serve();
  const [, url = "", token = ""] = /(http:\/\/127\.0\.0\.1:\d+)\/#token=(skein_[\w-]{43});/.exec(served.line) ?? [];
  expect(await createClient({ url, token }).me()).toMatchObject({ userId: "local", admin: true });
  await expect(createClient({ url }).sessions.list()).rejects.toMatchObject({ status: 401 });
  const file = join(home, "servers", `${new URL(url).port}.json`);
  expect([(await stat(join(home, "servers"))).mode & 0o777, (await stat(file)).mode & 0o777]).toEqual([0o700, 0o600]);
  expect(await findLocalServer()).toEqual({ url, token });
  expect(await findLocalServer({ port: 1 })).toBeNull();
  const opened = await runHere(["open"]);
  expect(opened).toEqual({ code: 0, stdout: `${url}/#token=${token}\n`, stderr: "" });
  await end(served, "SIGTERM");
  expect(await readdir(join(home, "servers"))).toEqual([]);
  expect(await findLocalServer()).toBeNull();
  expect(await runHere(["open"])).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^None of your servers/),
  });
});

test("open lists running servers, latest first, and drops killed ones", async () => {
  const home = await makeHome();
  const servers = [await serve("--json"), await serve("--json"), await serve("--json")];
  const told = servers.map(({ line }) => JSON.parse(line) as { url: string; token: string });
  await end(servers[1] as Served, "SIGKILL");
  const { stdout } = await runHere(["open", "--json"]);
  const address = ({ url, token }: { url: string; token: string }) => `${url}/#token=${token}`;
  expect(JSON.parse(stdout)).toEqual({
    servers: [told[2], told[0]].map((server) => ({ ...server, address: address(server as (typeof told)[0]) })),
  });
  const port = Number(new URL(told[0]?.url ?? "").port);
  expect(await findLocalServer({ port })).toEqual(told[0]);
  const one = await runHere(["open", "--port", String(port)]);
  expect(one.stdout).toBe(`${address(told[0] as (typeof told)[0])}\n`);
  expect(await readdir(join(home, "servers"))).toHaveLength(2);
});

test("another account of the machine is rejected by the server, and cannot find its token", async (context) => {
  if (process.getuid?.() !== 0) skipBecause(context, "only root can act as another account");
  const home = await makeHome();
  const { child, line } = await serve("--json");
  const { url, token } = JSON.parse(line) as { url: string; token: string };
  const ask = `for (const path of ["/api/me", "/api/sessions", "/api/catalogue"]) {
    const answer = await fetch(process.argv[1] + path);
    console.log(answer.status, (await answer.json()).code);
  }`;
  const { stdout } = await asNobody(process.execPath, "--input-type=module", "-e", ask, url);
  expect(stdout).toBe("401 UNAUTHORIZED\n".repeat(3));
  const file = join(home, "servers", `${new URL(url).port}.json`);
  for (const path of [file, join(home, "servers"), `/proc/${child.pid}/environ`]) {
    const looked = await asNobody("/bin/sh", "-c", 'cat "$1" || ls "$1/"', "sh", path);
    expect([path, looked.stdout]).toEqual([path, ""]);
    expect(looked.stderr).toMatch(/denied/);
  }
  const seen = await asNobody("/bin/cat", `/proc/${child.pid}/cmdline`);
  expect(seen.stdout).toContain("serve");
  expect(seen.stdout).not.toContain(token);
  expect(seen.stdout).not.toContain("skein_");
});

test("a server without a private directory still serves, and reports that skein open cannot find it", async () => {
  const home = await makeHome();
  await mkdir(home);
  await writeFile(join(home, "servers"), "");
  const { line, stderr } = await serve("--json");
  const server = JSON.parse(line) as { url: string; token: string };
  expect((await createClient(server).me()).userId).toBe("local");
  expect(await findLocalServer()).toBeNull();
  expect(stderr()).toMatch(/^skein open will not find this server, so copy the address: .+\n$/);
  expect(stderr()).not.toContain(server.token);
});

test("with --open-to-this-machine there is no token, and everyone on the machine has administrator rights", async () => {
  await makeHome();
  const served = await serve("--json", "--open-to-this-machine");
  const { line } = served;
  expect(served.stderr()).toMatch(
    /^--open-to-this-machine: every account and every program on this machine can use this server without a token, .*\.\n$/,
  );
  const told = JSON.parse(line) as { url: string };
  expect(Object.keys(told)).toEqual(["url"]);
  expect(await createClient(told).me()).toMatchObject({ userId: "local", admin: true });
  expect(await findLocalServer()).toBeNull();
});
