import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { OpenSandboxServer } from "../../../test/opensandbox-server.ts";
import { type Sandbox, SandboxError, type SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { openSandboxBackend, type OpenSandboxOptions } from "./index.ts";

const KEY = "key-4711-secret";

let server: OpenSandboxServer;
const opened: Sandbox[] = [];

beforeEach(async () => {
  server = await OpenSandboxServer.start(KEY);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  server.fault = () => null;
  await Promise.allSettled(opened.splice(0).map((sandbox) => sandbox.close()));
  await server[Symbol.asyncDispose]();
});

describe("opening", () => {
  test("sends what spec and options contain, and nothing from the environment", async () => {
    vi.stubEnv("OPEN_SANDBOX_API_KEY", "from-the-environment");
    vi.stubEnv("OPEN_SANDBOX_DOMAIN", "nowhere.invalid:1");
    const metadata = { team: "one" };
    const resource = { cpu: "2" };
    await open(
      { metadata, resource, timeoutSeconds: 77 },
      { image: "alpine", entrypoint: ["sleep", "1"], env: { A: "1" } },
    );
    const creating = server.seen.find(({ method, path }) => method === "POST" && path === "/v1/sandboxes");
    expect(JSON.parse(String(creating?.body))).toMatchObject({
      image: { uri: "alpine" },
      entrypoint: ["sleep", "1"],
      env: { A: "1" },
      timeout: 77,
      metadata,
      resourceLimits: resource,
    });
    expect(new Set(server.seen.map(({ headers }) => headers["open-sandbox-api-key"]))).toEqual(new Set([KEY]));
    expect(server.seen.some(({ path }) => path.includes("metrics"))).toBe(false);
    const keyless = openSandboxBackend({ domain: server.domain }).open({});
    await expect(keyless).rejects.toMatchObject({ kind: "not_permitted" });
    expect(server.seen.at(-1)?.headers["open-sandbox-api-key"]).toBeUndefined();
  });

  test("uses the default image, and a root in the user's home or as in the spec", async () => {
    const sandbox = await open();
    const home = server.sandboxes.get(sandbox.id)?.home ?? "";
    expect(sandbox.workingDir).toBe(`${home}/workspace`);
    const creating = server.seen.find(({ method, path }) => method === "POST" && path === "/v1/sandboxes");
    expect(JSON.parse(String(creating?.body)).image).toEqual({ uri: "python:3.12" });
    const other = await open({}, { workingDir: `${home}/it's "here"`, allowPaths: [`${home}/beside`] });
    expect((await other.exec("pwd")).stdout).toBe(`${home}/it's "here"\n`);
    await other.writeFile(`${home}/beside/file`, "allowed");
    expect((await other.list(`${home}/beside`)).map(({ path }) => path)).toEqual([`${home}/beside/file`]);
    await expect(other.writeFile(`${home}/besides`, "no")).rejects.toMatchObject({ kind: "not_permitted" });
  });

  test("refuses unsupported options by name", async () => {
    const backend = openSandboxBackend({ domain: server.domain, apiKey: KEY });
    for (const spec of [{ isolation: "hope" as "auto" }, { network: false }, { limits: { processes: 1 } }]) {
      await expect(backend.open(spec)).rejects.toMatchObject({ kind: "unsupported" });
    }
    expect(await backend.reach?.({ isolation: "required" })).toEqual({
      directory: null,
      isolated: true,
      network: true,
    });
    const wrong: Record<string, unknown>[] = [
      { workingDir: "relative" },
      { allowPaths: ["relative"] },
      { env: { "A=B": "x" } },
      { timeoutMs: -1 },
      { entrypoint: "sh" },
      { image: "" },
      { imagee: "x" },
    ];
    for (const spec of wrong) {
      await expect(backend.open(spec as SandboxSpec)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    }
    expect(server.seen).toEqual([]);
  });

  test("leaves no sandbox behind when its directory cannot be made", async () => {
    const backend = openSandboxBackend({ domain: server.domain, apiKey: KEY });
    await expect(backend.open({ workingDir: "/dev/null/below" })).rejects.toMatchObject({ kind: "os_error" });
    expect(server.sandboxes.size).toBe(0);
  });
});

describe("closing and finding again", () => {
  test("ends the sandbox, and with keep leaves it running and removes its scratch files", async () => {
    const gone = await open();
    await gone.close();
    expect(server.sandboxes.has(gone.id)).toBe(false);
    const kept = await open({ keep: true });
    await kept.writeFile("file.txt", "kept");
    await kept.close();
    const home = server.sandboxes.get(kept.id)?.home ?? "";
    expect((await readdir(`${home}/tmp`)).filter((name) => name.startsWith(".skein"))).toEqual([]);
    const again = await attach(kept.id);
    expect(Buffer.from(await again.readFile("file.txt")).toString()).toBe("kept");
    await again.close();
    expect(server.sandboxes.has(kept.id)).toBe(false);
    await expect(attach(kept.id)).rejects.toMatchObject({ kind: "file_not_found" });
  });

  test("resumes a paused sandbox", async () => {
    const sandbox = await open({ keep: true });
    await sandbox.close();
    const remote = server.sandboxes.get(sandbox.id);
    if (remote !== undefined) remote.state = "Paused";
    const again = await attach(sandbox.id);
    expect(remote?.state).toBe("Running");
    expect((await again.exec(["echo", "awake"])).stdout).toBe("awake\n");
  });

  test("closes if the server has ended it already, and fails if it cannot be ended", async () => {
    const [one, other] = [await open(), await open()];
    server.sandboxes.delete(one.id);
    await one.close();
    server.fault = ({ method }) => (method === "DELETE" ? { status: 503, body: "{}" } : null);
    await expect(other.close()).rejects.toMatchObject({ kind: "os_error" });
    expect(other.closed).toBe(true);
  });

  test("extends the sandbox's lease for a command with a longer timeout", async () => {
    const sandbox = await open({ timeoutSeconds: 600 });
    const renewals = () => server.seen.filter(({ path }) => path.endsWith("/renew-expiration"));
    const before = renewals().length;
    await sandbox.exec("true", { timeoutMs: 60_000 });
    expect(renewals().length).toBe(before);
    await sandbox.exec("true", { timeoutMs: 3_600_000 });
    expect(renewals().length).toBe(before + 1);
    const { expiresAt } = JSON.parse(String(renewals().at(-1)?.body)) as { expiresAt: string };
    expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now() + 3_600_000);
  });
});

describe("commands", () => {
  test("are transmitted unchanged, whatever is in them", async () => {
    const sandbox = await open();
    const texts = ["it's", '"$(id)"', "`id`", "\\", "a\nb", "*", "-n", "ü💥", " ", "$'x'", "!!", "|end|"];
    const { stdout } = await sandbox.exec(["printf", "%s\\0", ...texts]);
    expect(stdout.split("\0").slice(0, -1)).toEqual(texts);
    expect((await sandbox.exec("printf '\\r\\n\\n  x\\r'")).stdout).toBe("\r\n\n  x\r");
    const env = Object.fromEntries(texts.map((text, index) => [`V${index}`, text]));
    expect((await sandbox.exec('printf %s "$V0$V1$V4"', { env })).stdout).toBe(`${texts[0]}${texts[1]}${texts[4]}`);
    const long = `: '${"x".repeat(200_000)}'; echo long`;
    expect((await sandbox.exec(long)).stdout).toBe("long\n");
    expect((await sandbox.exec(["true"], { env: { PATH: "/bin:/usr/bin" } })).exitCode).toBe(0);
    expect((await sandbox.exec("echo lost", { env: { PATH: "/nowhere" } })).stdout).toBe("lost\n");
  });

  test("are interrupted on the server if their processes cannot be found", async () => {
    const sandbox = await open();
    const abort = new AbortController();
    const running = sandbox.exec("echo $$ > pid; sleep 600", { signal: abort.signal });
    running.catch(() => {});
    const pid = await pidIn(sandbox);
    server.fault = ({ method, path }) => (method === "POST" && path.endsWith("/command") ? { status: 500 } : null);
    abort.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
    expect(server.seen.filter(({ method, path }) => method === "DELETE" && path.endsWith("/command")).length).toBe(1);
    expect(await lives(pid)).toBe(false);
  });

  test("are killed together with their daemons, even if they ignore interrupts", async () => {
    const sandbox = await open();
    const abort = new AbortController();
    const command = "setsid sh -c 'echo $$ > pid; exec sleep 600' & trap '' TERM; while :; do sleep 1; done";
    const running = sandbox.exec(command, { signal: abort.signal });
    running.catch(() => {});
    const pid = await pidIn(sandbox);
    abort.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
    expect(await lives(pid)).toBe(false);
  });

  test("run, and end with all processes that they started, with only a plain shell", async () => {
    await server[Symbol.asyncDispose]();
    server = await OpenSandboxServer.start(KEY, "sh");
    const sandbox = await open();
    const { exitCode, stdout, stderr } = await sandbox.exec("echo one; echo two >&2; exit 3");
    expect([exitCode, stdout, stderr]).toEqual([3, "one\n", "two\n"]);
    const start = "setsid sh -c 'echo $$ > pid; echo started; exec sleep 600' & wait";
    await expect(sandbox.exec(start, { timeoutMs: 1000 })).rejects.toMatchObject({
      kind: "timeout",
      output: { stdout: "started\n", stderr: "" },
    });
    const pid = Number(Buffer.from(await sandbox.readFile("pid")).toString());
    expect(await lives(pid)).toBe(false);
  });

  test("fail if the server ends while they run, and do not wait endlessly", async () => {
    const sandbox = await open();
    const running = sandbox.exec("touch started; sleep 600");
    running.catch(() => {});
    while (!(await sandbox.exists("started")));
    await server[Symbol.asyncDispose]();
    await expect(running).rejects.toMatchObject({ code: "SANDBOX_FAILED", kind: "os_error" });
    server = await OpenSandboxServer.start(KEY);
  });
});

test("a reader of a file keeps the old content while the file is replaced", async () => {
  const sandbox = await open();
  await sandbox.writeFile("file.txt", "old");
  const reading = sandbox.exec("exec 3<file.txt; touch ready; while [ ! -e go ]; do sleep 0.02; done; cat <&3");
  while (!(await sandbox.exists("ready")));
  await sandbox.writeFile("file.txt", "new");
  await sandbox.writeFile("go", "");
  expect((await reading).stdout).toBe("old");
  expect(Buffer.from(await sandbox.readFile("file.txt")).toString()).toBe("new");
});

test("a link to a missing directory cannot make a new file outside", async () => {
  const sandbox = await open();
  await sandbox.exec("ln -s nope/../../escaped sly");
  await expect(sandbox.writeFile("sly", "x")).rejects.toMatchObject({ kind: "not_permitted" });
  await expect(sandbox.readFile("sly")).rejects.toMatchObject({ kind: "not_permitted" });
  const home = server.sandboxes.get(sandbox.id)?.home ?? "";
  expect((await readdir(home)).sort()).toEqual(["tmp", "workspace"]);
});

describe("a failure of the server or the network", () => {
  test.for([
    [400, "os_error"],
    [401, "not_permitted"],
    [403, "not_permitted"],
    [404, "file_not_found"],
    [500, "os_error"],
    [501, "unsupported"],
    [503, "os_error"],
    [504, "timeout"],
  ] as const)("status %i is %s, and no message holds the key", async ([status, kind]) => {
    const sandbox = await open();
    const body = JSON.stringify({ code: "X", message: `the key ${KEY} is wrong`, headers: { key: KEY } });
    server.fault = () => ({ status, body });
    const calls = [
      () => openSandboxBackend({ domain: server.domain, apiKey: KEY }).open({}),
      () => attach(sandbox.id),
      () => sandbox.exec(["true"]),
      () => sandbox.writeFile("a", "a"),
      () => sandbox.snapshot(),
    ];
    for (const call of calls) {
      const error = await call().then(
        () => null,
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(SandboxError);
      expect((error as SandboxError).kind).toBe(kind);
      expect((error as SandboxError).message).toMatch(/^The OpenSandbox server at 127\.0\.0\.1:\d+ .*\.\)?$/);
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(KEY);
    }
  });

  test("a missing server, or another kind of server", async () => {
    const closed = await OpenSandboxServer.start();
    const { domain: free } = closed;
    await closed[Symbol.asyncDispose]();
    await expect(openSandboxBackend({ domain: free }).open({})).rejects.toMatchObject({
      kind: "os_error",
      message: expect.stringContaining("ECONNREFUSED"),
    });
    const other = createServer((_request, response) => response.end("<html>hello</html>"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const domain = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    await expect(openSandboxBackend({ domain }).open({})).rejects.toMatchObject({ kind: "os_error" });
    await expect(openSandboxBackend({ domain }).attach?.("some-id", {})).rejects.toMatchObject({ kind: "os_error" });
    other.closeAllConnections();
    await new Promise((resolve) => other.close(resolve));
  });
});

/** The process id that a command writes into the file "pid"; waits for it. */
async function pidIn(sandbox: Sandbox): Promise<number> {
  return Number((await sandbox.exec("while [ ! -s pid ]; do sleep 0.02; done; cat pid")).stdout);
}

/** Whether a process runs; a zombie does not. */
async function lives(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => ") Z");
  return !/\) [ZX]/.test(stat);
}

test("says which package to install when the client is missing", async () => {
  vi.doMock("@alibaba-group/opensandbox", () => {
    throw new Error("Cannot find package");
  });
  const opening = openSandboxBackend({ domain: server.domain }).open({});
  await expect(opening).rejects.toMatchObject({ code: "DRIVER_MISSING" });
  await expect(opening).rejects.toThrow("install the package @alibaba-group/opensandbox, version 0.1.11 or later.");
  vi.doUnmock("@alibaba-group/opensandbox");
  vi.resetModules();
});

async function open(options: OpenSandboxOptions = {}, spec: SandboxSpec = {}): Promise<Sandbox> {
  const sandbox = await openSandboxBackend({ domain: server.domain, apiKey: KEY, ...options }).open(spec);
  opened.push(sandbox);
  return sandbox;
}

async function attach(id: string): Promise<Sandbox> {
  const sandbox = await openSandboxBackend({ domain: server.domain, apiKey: KEY }).attach?.(id, {});
  if (sandbox === undefined) throw new Error("there is no attach");
  opened.push(sandbox);
  return sandbox;
}
