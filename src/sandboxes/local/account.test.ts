import { chmod, chown, mkdir, mkdtemp, readFile, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, type TestContext, test, vi } from "vitest";
import { skipBecause } from "../../../test/skip.ts";
import type { Sandbox, SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { findBubblewrap } from "./bubblewrap.ts";
import { hostEnvironment } from "./host-environment.ts";
import { localBackend } from "./local-backend.ts";

const NOBODY = 65_534;

let directory: string;

beforeEach(async () => {
  directory = await realpath(await mkdtemp("/var/tmp/skein-account-"));
  vi.stubEnv("SKEIN_HOME", join(directory, "skein"));
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await rm(directory, { recursive: true, force: true });
  });
});

async function open(context: TestContext, spec: SandboxSpec = {}): Promise<Sandbox> {
  if (process.getuid?.() !== 0) skipBecause(context, "only root can run commands as other accounts");
  const setpriv = await findBubblewrap(hostEnvironment()).then(
    (bubblewrap) => bubblewrap.setpriv,
    () => null,
  );
  if (setpriv === null) skipBecause(context, "bubblewrap or setpriv does not work on this machine");
  const sandbox = await localBackend.open({ isolation: "required", ...spec });
  onTestFinished(() => sandbox.close());
  return sandbox;
}

async function said(sandbox: Sandbox, command: string): Promise<string> {
  const { stdout, stderr } = await sandbox.exec(command);
  return `${stdout}${stderr}`.trim();
}

test("as root, each temporary directory gets a separate account, and keeps it", async (context) => {
  const given = join(directory, "given");
  const [one, other] = [await open(context), await open(context, { workingDir: given })];
  const [oneId, otherId] = [await said(one, "id -u"), await said(other, "id -u")];
  expect(Number(oneId)).toBeGreaterThan(NOBODY);
  expect(Number(otherId)).toBeGreaterThan(NOBODY);
  expect(oneId).not.toBe(otherId);
  expect((await stat(given)).mode & 0o777).toBe(0o700);
  expect(await said(await open(context, { workingDir: given }), "id -u")).toBe(otherId);
  const attached = await localBackend.attach?.(one.id, one.spec);
  expect(await said(attached as Sandbox, "id -u")).toBe(oneId);
  await attached?.close();
  expect(await said(one, "id -un; echo $USER; grep -c '^CapBnd:.0*$' /proc/self/status")).toBe(
    "skein-sandbox\nskein-sandbox\n1",
  );
});

test("commands run as the owner of an existing directory; root's own stays root's", async (context) => {
  const [roots, theirs, both] = ["roots", "theirs", "both"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  await open(context);
  for (const path of [roots, theirs]) await mkdir(path);
  await chown(theirs, NOBODY, 0);
  expect(await said(await open(context, { workingDir: roots }), "id -u; echo x > x && cat x")).toBe("0\nx");
  const sandbox = await open(context, { workingDir: theirs });
  expect(await said(sandbox, "id -u; id -g; echo x > x && cat x")).toBe(`${NOBODY}\n${NOBODY}\nx`);
  await sandbox.writeFile("a/b.txt", "b");
  expect((await stat(join(theirs, "a/b.txt"))).uid).toBe(NOBODY);
  expect((await stat(join(theirs, "a"))).uid).toBe(NOBODY);
  // Other allowed paths belong to root, so the commands must run as root, too.
  const allowing = await open(context, { workingDir: both, allowPaths: [roots] });
  expect(await said(allowing, `id -u; echo y > ${roots}/y && cat ${roots}/y`)).toBe("0\ny");
});

test("file methods and commands of another account change, read and remove each other's files", async (context) => {
  const sandbox = await open(context);
  await sandbox.writeFile("deep/er/file.txt", "one\n");
  expect(await said(sandbox, "echo two >> deep/er/file.txt && mkdir deep/made && cat deep/er/file.txt")).toBe(
    "one\ntwo",
  );
  await sandbox.writeFile("deep/er/file.txt", "three\n");
  expect(await said(sandbox, "echo four >> deep/er/file.txt && cat deep/er/file.txt")).toBe("three\nfour");
  await sandbox.exec(
    "echo own > own; chmod 600 own; mkdir -p locked/in; echo x > locked/in/x; chmod 0 locked/in; chmod 500 locked",
  );
  expect(new TextDecoder().decode(await sandbox.readFile("own"))).toBe("own\n");
  expect((await sandbox.list(".", { recursive: true })).map(({ path }) => path)).toContain("locked/in/x");
  expect(await sandbox.remove("locked")).toBe(true);
  expect((await sandbox.runCode("sh", "echo code; rm -r deep && echo removed")).stdout).toBe("code\nremoved\n");
});

test("a restore gives the files to the account of the directory that they are restored to", async (context) => {
  const [from, to] = [await open(context), await open(context)];
  await from.exec("mkdir -p d/e; echo f > d/e/f; ln -s d/e/f link; chmod 750 d; chmod 4711 d/e/f");
  const snapshot = await from.snapshot();
  for (const sandbox of [from, to]) {
    await sandbox.restore(snapshot);
    const check =
      "stat -c '%u %a' d d/e d/e/f; stat -c %u link; chmod 600 d/e/f && echo g >> link && cat d/e/f; rm -r d link; ls -A";
    const uid = await said(sandbox, "id -u");
    expect(await said(sandbox, check)).toBe(`${uid} 750\n${uid} 755\n${uid} 711\n${uid}\nf\ng`);
  }
  await localBackend.deleteSnapshot?.(snapshot);
});

test("a command of another account reaches its directory, its programs and a home below directories of root alone", async (context) => {
  const home = join(directory, "home");
  await mkdir(join(home, "tools/bin"), { recursive: true });
  await writeFile(join(home, "tools/bin/tool"), "#!/bin/sh\necho tool\n", { mode: 0o755 });
  await mkdir(join(directory, "real"));
  await symlink("../real", join(home, "way"));
  await chmod(directory, 0o700);
  await chmod(home, 0o700);
  vi.stubEnv("HOME", home);
  vi.stubEnv("PATH", `${join(home, "tools/bin")}:${process.env["PATH"]}`);
  const sandbox = await open(context, { workingDir: join(home, "way/work") });
  const script =
    "tool; echo kept > kept; cat kept; echo note > ~/note && cat ~/note; echo s > /dev/shm/s && echo t > /tmp/t && echo space";
  expect(await said(sandbox, script)).toBe("tool\nkept\nnote\nspace");
  expect(await readFile(join(directory, "real/work/kept"), "utf8")).toBe("kept\n");
});
