import { type AddressInfo, createServer, type Server } from "node:net";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, type TestContext, test, vi } from "vitest";
import { skipBecause } from "../../../test/skip.ts";
import { type Sandbox, SandboxError, type SandboxSpec } from "../../session/sandbox.ts";
import { localBackend } from "./local-backend.ts";

let directory: string;

beforeEach(async () => {
  // Not below /tmp, which isolated commands have for themselves.
  directory = await realpath(await mkdtemp("/var/tmp/skein-bubblewrap-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

async function open(context: TestContext, spec: SandboxSpec = {}): Promise<Sandbox> {
  try {
    const sandbox = await localBackend.open({ ...spec, isolation: "bubblewrap" });
    onTestFinished(() => sandbox.close());
    return sandbox;
  } catch (error) {
    if (!(error instanceof SandboxError) || error.kind !== "unsupported") throw error;
    return skipBecause(context, "bubblewrap is not installed, or does not work, on this machine");
  }
}

test("an isolated command reads the host's files, and writes only below the root and in allowPaths", async (context) => {
  await mkdir(join(directory, "shared"));
  await writeFile(join(directory, "host.txt"), "host");
  const shared = join(directory, "shared");
  const sandbox = await open(context, { allowPaths: [shared, join(directory, "missing")] });
  const { stdout, stderr } = await sandbox.exec(
    `cat ${directory}/host.txt; echo x > ${directory}/host.txt; echo y > ${shared}/y.txt; echo z > z.txt; rm ${directory}/host.txt`,
  );
  expect(stdout).toBe("host");
  expect(stderr).toContain("Read-only file system");
  expect(await readFile(join(directory, "host.txt"), "utf8")).toBe("host");
  expect(await readFile(join(shared, "y.txt"), "utf8")).toBe("y\n");
  expect(await readFile(join(sandbox.workingDir, "z.txt"), "utf8")).toBe("z\n");
});

test("an isolated command reaches no server of the host, by network or by socket file in /run or /tmp", async (context) => {
  const sandbox = await open(context);
  if (!sandbox.capabilities.languages.includes("javascript")) skipBecause(context, "there is no node on this machine");
  const socket = join(tmpdir(), `skein-bubblewrap-${process.pid}.sock`);
  const connections: string[] = [];
  const listen = async (name: string, ...where: [number, string] | [string]): Promise<Server> => {
    const server = createServer((connection) => {
      connections.push(name);
      connection.destroy();
    });
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(...(where as [string]), resolve));
    return server;
  };
  await listen("socket", socket);
  const { port } = (await listen("network", 0, "127.0.0.1")).address() as AddressInfo;
  const program = (to: string): string =>
    `require("node:net").connect(${to}).on("connect", () => { console.log("connected"); process.exit(); })
       .on("error", (error) => console.log(error.code));`;
  const network = await sandbox.runCode("javascript", program(`${port}, "127.0.0.1"`));
  const file = await sandbox.runCode("javascript", program(JSON.stringify(socket)));
  expect([network.stdout, file.stdout]).toEqual(["ECONNREFUSED\n", "ENOENT\n"]);
  expect((await sandbox.exec("ls /run")).stdout.replace("current-system\n", "")).toBe("");
  expect(connections).toEqual([]);
  // The same program does reach it from a sandbox without isolation, so the isolation made the difference.
  const free = await localBackend.open({});
  onTestFinished(() => free.close());
  expect((await free.runCode("javascript", program(`${port}, "127.0.0.1"`))).stdout).toBe("connected\n");
});

test("an isolated command sees no process but its own, and a /tmp of its own", async (context) => {
  const sandbox = await open(context);
  const { stdout } = await sandbox.exec("ls -d /proc/[0-9]* | wc -l; echo private > /tmp/skein-private; echo $TMPDIR");
  const [processes, temporary] = stdout.trim().split("\n");
  expect(Number(processes)).toBeLessThan(10);
  expect(temporary).toBe("/tmp");
  expect((await sandbox.exec("ls /tmp/skein-private")).exitCode).not.toBe(0);
  await expect(readFile("/tmp/skein-private")).rejects.toMatchObject({ code: "ENOENT" });
});

test("a daemon that even emptied its environment ends with its isolated command", async (context) => {
  const sandbox = await open(context);
  const holding = `flock lock sh -c "touch ready; sleep 600"`;
  await sandbox.exec(
    `(env -i PATH="$PATH" setsid ${holding} >/dev/null 2>&1 </dev/null &); while [ ! -e ready ]; do sleep 0.02; done`,
  );
  expect((await sandbox.exec(["flock", "--nonblock", "lock", "true"])).exitCode).toBe(0);
});

test("says what to install where there is no bubblewrap, and what is wrong where it does not work", async () => {
  vi.stubEnv("PATH", directory);
  onTestFinished(() => void vi.unstubAllEnvs());
  const opening = () => localBackend.open({ isolation: "bubblewrap" });
  await expect(opening()).rejects.toMatchObject({
    kind: "unsupported",
    message: expect.stringMatching(/install .*bubblewrap/),
  });
  await writeFile(join(directory, "bwrap"), "#!/bin/sh\necho 'no permission here' >&2; exit 1\n", { mode: 0o755 });
  await expect(opening()).rejects.toMatchObject({
    kind: "unsupported",
    message: expect.stringContaining("no permission here"),
  });
});

test("a directory of its own is not left behind by an opening that fails", async () => {
  const temporary = join(directory, "tmp");
  await mkdir(temporary);
  vi.stubEnv("PATH", directory);
  vi.stubEnv("TMPDIR", temporary);
  onTestFinished(() => void vi.unstubAllEnvs());
  await expect(localBackend.open({ isolation: "bubblewrap" })).rejects.toMatchObject({ kind: "unsupported" });
  expect(await readdir(temporary)).toEqual([]);
});
