import { type AddressInfo, createServer, type Server } from "node:net";
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, type TestContext, test, vi } from "vitest";
import { skipBecause } from "../../../test/skip.ts";
import { createHeader } from "../../session/log/header.ts";
import { type Sandbox, SandboxError, type SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { openSqliteStore } from "../../stores/sqlite/index.ts";
import { localBackend } from "./local-backend.ts";

let directory: string;

beforeEach(async () => {
  // A file that only its owner can read counts as private, and with the umask 077 every file would be one.
  const umask = process.umask(0o022);
  onTestFinished(() => void process.umask(umask));
  // Not below /tmp, because isolated commands have a private /tmp.
  directory = await realpath(await mkdtemp("/var/tmp/skein-bubblewrap-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

async function open(context: TestContext, spec: SandboxSpec = {}): Promise<Sandbox> {
  try {
    const sandbox = await localBackend.open({ ...spec, isolation: "required" });
    onTestFinished(() => sandbox.close());
    return sandbox;
  } catch (error) {
    if (!(error instanceof SandboxError) || error.kind !== "unsupported") throw error;
    return skipBecause(context, "bubblewrap is not installed, or does not work, on this machine");
  }
}

function stubEnv(name: string, value: string): void {
  vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

/** The variables of a process as a command sees them; none if it does not see the process. */
async function variablesOf(sandbox: Sandbox, process: string): Promise<Record<string, string>> {
  return parse((await sandbox.exec(`cat /proc/${process}/environ`)).stdout);
}

function parse(text: string): Record<string, string> {
  return Object.fromEntries(
    text
      .split("\0")
      .filter(Boolean)
      .map((line) => line.split("=", 2) as [string, string]),
  );
}

test("an isolated command can read the system, can write the root and allowPaths, and sees nothing else", async (context) => {
  await mkdir(join(directory, "shared"));
  await writeFile(join(directory, "host.txt"), "host");
  const shared = join(directory, "shared");
  // A PATH may contain homes of others.
  const env = { PATH: "/usr/bin:/bin" };
  const sandbox = await open(context, { allowPaths: [shared, join(directory, "missing")], env });
  const { stdout, stderr } = await sandbox.exec(
    `test -s /etc/passwd && echo system; cat ${directory}/host.txt; echo y > ${shared}/y.txt; echo z > z.txt
     echo x > /usr/x; echo x > /x; ls -A /var/tmp ${directory}; ls -d /srv /mnt /var/log /boot
     for each in /home/*; do [ -e "$each" ] && [ "$each" != "$HOME" ] && echo "$each"; done`,
  );
  expect(stdout).toBe(`system\n/var/tmp:\n${directory.slice("/var/tmp/".length)}\n\n${directory}:\nshared\n`);
  expect(stderr.match(/Read-only file system/g)).toHaveLength(2);
  expect(await readFile(join(shared, "y.txt"), "utf8")).toBe("y\n");
  expect(await readFile(join(sandbox.workingDir, "z.txt"), "utf8")).toBe("z\n");
});

test("an isolated command sees an empty home directory, which is discarded after it", async (context) => {
  const home = join(directory, "home");
  await mkdir(join(home, ".ssh"), { recursive: true });
  await writeFile(join(home, ".ssh/id"), "key");
  stubEnv("HOME", home);
  const sandbox = await open(context, { workingDir: join(home, "project") });
  const { stdout } = await sandbox.exec("ls -A ~; cat ~/.ssh/id; echo note > ~/note; cat ~/note; echo kept > kept");
  expect(stdout).toBe("project\nnote\n");
  expect((await readdir(home)).sort()).toEqual([".ssh", "project"]);
  expect(await readFile(join(home, "project/kept"), "utf8")).toBe("kept\n");
  const elsewhere = await open(context, { env: { HOME: "/no-such-home/of-anyone" } });
  expect((await elsewhere.exec("echo note > ~/note; cat ~/note; ls -A ~")).stdout).toBe("note\nnote\n");
});

test("an isolated command finds the programs of its PATH in a home directory, and what belongs to them", async (context) => {
  const home = join(directory, "home");
  const program = async (path: string, text: string): Promise<void> => {
    await mkdir(join(home, path, ".."), { recursive: true });
    await writeFile(join(home, path), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  };
  await program(".versions/v1/bin/tool", 'exec "$(dirname "$0")/../lib/part"');
  await program(".versions/v1/lib/part", "echo part");
  await symlink("v1", join(home, ".versions/current"));
  await program("apps/other/bin/other", "echo other");
  await program(".local/bin/mine", "echo mine");
  await symlink("../../apps/other/bin/other", join(home, ".local/bin/other"));
  await program(".local/share/keyring", "echo secret");
  await writeFile(join(home, "apps/secret"), "secret");
  stubEnv("HOME", home);
  const path = [".versions/current/bin", ".local/bin"].map((each) => join(home, each)).join(":");
  const sandbox = await open(context, { env: { PATH: `${path}:/usr/bin:/bin` } });
  const { stdout } = await sandbox.exec(
    `tool; mine; other; cat ~/.local/share/keyring ~/apps/secret; echo x > ~/.local/bin/x`,
  );
  expect(stdout).toBe("part\nmine\nother\n");
  expect(await readdir(join(home, ".local/bin"))).not.toContain("x");
});

/** Creates files of a home by path and content, with a mode. */
async function fill(
  home: string,
  files: Readonly<Record<string, readonly [text: string, mode: number]>>,
): Promise<void> {
  for (const [path, [text, mode]] of Object.entries(files)) {
    await mkdir(join(home, path, ".."), { recursive: true });
    await writeFile(join(home, path), text);
    await chmod(join(home, path), mode);
  }
}

const SCRIPT = (text: string): [string, number] => [`#!/bin/sh\n${text}\n`, 0o755];

test("an isolated command sees only libraries beside the directories of its PATH, and no private files in these", async (context) => {
  const home = join(directory, "home");
  await fill(home, {
    ".pulumi/bin/pulumi": SCRIPT('echo pulumi; cat "$(dirname "$0")/../lib/part"'),
    ".pulumi/bin/token": ["secret", 0o600],
    ".pulumi/bin/public": ["public\n", 0o644],
    ".pulumi/credentials.json": ["secret", 0o600],
    ".pulumi/config.json": ["secret", 0o644],
    ".pulumi/lib/part": ["part\n", 0o644],
    ".pulumi/lib/deep/token": ["secret", 0o600],
    ".pulumi/lib/private/token": ["secret", 0o644],
    ".pulumi/state/key": ["secret", 0o644],
    ".own/bin/mine": [`#!/bin/sh\necho mine\n`, 0o700],
  });
  await chmod(join(home, ".pulumi/lib/private"), 0o700);
  await symlink(home, join(home, ".own/lib"));
  stubEnv("HOME", home);
  const path = [".pulumi/bin", ".own/bin", "missing/bin"].map((each) => join(home, each)).join(":");
  const sandbox = await open(context, { env: { PATH: `${path}:/usr/bin:/bin` } });
  // As root, the command runs as another account, which may not run files that are private to root.
  const own = process.getuid?.() === 0 ? "" : "mine\n";
  const { stdout } = await sandbox.exec("pulumi; cat ~/.pulumi/bin/public; mine; grep -rl secret ~; ls -A ~/.pulumi");
  expect(stdout).toBe(`pulumi\npart\npublic\n${own}bin\nlib\n`);
});

test("an isolated command under the account of a home sees no private files in it, however deep they are", async (context) => {
  const home = join(directory, "home");
  // An existing directory keeps its owner, so that commands in it run as the account of this program.
  const workingDir = join(directory, "own");
  await mkdir(workingDir);
  await fill(home, {
    ".x/bin/tool": SCRIPT("echo tool"),
    ".x/bin/a/b/c/d/e/token": ["secret", 0o600],
    ".x/bin/a/b/c/d/e/part": ["part", 0o644],
    ".x/lib/a/b/c/d/private/token": ["secret", 0o644],
  });
  await chmod(join(home, ".x/lib/a/b/c/d/private"), 0o700);
  stubEnv("HOME", home);
  const sandbox = await open(context, { workingDir, env: { PATH: `${join(home, ".x/bin")}:/usr/bin:/bin` } });
  const { stdout } = await sandbox.exec("tool; cat ~/.x/bin/a/b/c/d/e/part; grep -rls secret ~");
  expect(stdout).toBe("tool\npart");
});

test("an isolated command finds programs that links and scripts of its PATH lead to, with their packages, and no other files", async (context) => {
  const home = join(directory, "home");
  await fill(home, {
    ".nvm/v1/bin/node": SCRIPT("echo node"),
    ".nvm/v1/lib/node_modules/npm/bin/npm-cli.js": SCRIPT('cat "$(dirname "$(readlink -f "$0")")/../lib/npm"'),
    ".nvm/v1/lib/node_modules/npm/lib/npm": ["npm\n", 0o644],
    "tools/black/bin/black": ["", 0o644],
    "tools/black/bin/python": SCRIPT('cat "$(dirname "$0")/../pyvenv.cfg"; cat "$(dirname "$0")/../lib/black"'),
    "tools/black/pyvenv.cfg": ["environment\n", 0o644],
    "tools/black/lib/black": ["black\n", 0o644],
    "tools/black/notes": ["secret", 0o644],
    "project/run.sh": SCRIPT("echo run; cat ~/project/.env"),
    "project/.env": ["secret", 0o644],
    "project/node_modules/pkg/cli.js": SCRIPT('cat "$(dirname "$(readlink -f "$0")")/../other/data"'),
    "project/node_modules/other/data": ["other\n", 0o644],
    ".aws/credentials": ["secret", 0o600],
    ".aws/bin/key": ["secret", 0o600],
    "notes.txt": ["secret", 0o644],
    "data/file": ["secret", 0o644],
    ".local/bin/script": [`#!${home}/tools/black/bin/python\n`, 0o755],
  });
  const links = {
    ".nvm/v1/bin/npm": "../lib/node_modules/npm/bin/npm-cli.js",
    ".nvm/current": "v1",
    ".local/bin/run": "step",
    ".local/bin/step": join(home, "links/run"),
    "links/run": "../project/run.sh",
    ".local/bin/cli": "../../project/node_modules/pkg/cli.js",
    ".local/bin/aws": "../../.aws/credentials",
    ".local/bin/key": "../../.aws/bin/key",
    ".local/bin/notes": join(home, "notes.txt"),
    ".local/bin/all": home,
    ".local/bin/data": "../../data",
    ".local/bin/loop": "loop",
    ".local/bin/shadow": "/etc/shadow",
  };
  await mkdir(join(home, "links"));
  for (const [path, target] of Object.entries(links)) await symlink(target, join(home, path));
  stubEnv("HOME", home);
  const path = [".nvm/current/bin", ".local/bin"].map((each) => join(home, each)).join(":");
  const sandbox = await open(context, { env: { PATH: `${path}:/usr/bin:/bin` } });
  const { stdout } = await sandbox.exec("node; npm; run; cli; script; cat ~/.nvm/current/bin/node | tail -1");
  expect(stdout).toBe("node\nnpm\nrun\nother\nenvironment\nblack\necho node\n");
  const looking =
    "grep -rls secret ~; cd ~/.local/bin; cat aws key notes shadow; ls data/ ~/data ~/.aws; ls -A ~/project";
  expect((await sandbox.exec(looking)).stdout).toBe("node_modules\nrun.sh\n");
});

test("a PATH with a home, a directory that contains one, a private or a relative directory shows only programs", async (context) => {
  const home = join(directory, "home");
  await fill(home, {
    "in-home": SCRIPT("echo in-home"),
    "notes.txt": ["secret", 0o644],
    "sub/notes.txt": ["secret", 0o644],
    "inner/tool": SCRIPT("echo inner"),
    "inner/notes.txt": ["secret", 0o644],
    ".ssh/id_rsa": ["secret", 0o600],
    ".ssh/config": ["secret", 0o644],
    ".ssh/agent": SCRIPT("echo agent"),
    ".ssh/bin/helper": SCRIPT("echo helper"),
    "link-target/linked": SCRIPT("echo linked"),
    "work/bin/relative": SCRIPT("echo relative"),
    "other/bin/relative-outside": SCRIPT("echo outside"),
    "other/notes.txt": ["secret", 0o644],
  });
  await chmod(join(home, ".ssh"), 0o700);
  await symlink("link-target", join(home, "link"));
  stubEnv("HOME", join(home, "inner"));
  const absolute = [
    directory,
    home,
    join(home, "inner"),
    join(home, ".ssh"),
    join(home, ".ssh/bin"),
    join(home, "link"),
  ];
  const sandbox = await open(context, {
    workingDir: join(home, "work"),
    env: { PATH: [...absolute, "bin", "../other/bin", "", "/usr/bin", "/bin"].join(":") },
  });
  const programs = ["in-home", "tool", "agent", "helper", "linked", "relative", "relative-outside"];
  const { stdout } = await sandbox.exec(`${programs.join("; ")}; grep -rl secret ${directory}`);
  expect(stdout).toBe("in-home\ninner\nagent\nhelper\nlinked\nrelative\n");
});

test("a command cannot use links in its own files to make a home visible to the next command", async (context) => {
  const home = join(directory, "home");
  await fill(home, {
    "private/bin/tool": SCRIPT("echo tool"),
    "private/bin/notes": ["secret", 0o644],
    "tools/bin/into": SCRIPT("echo into"),
  });
  const root = join(home, "work");
  await mkdir(join(root, "bin"), { recursive: true });
  await symlink(join(root, "bin/next"), join(home, "tools/bin/out"));
  stubEnv("HOME", home);
  const path = [join(root, "bin"), join(home, "tools/bin")].join(":");
  const sandbox = await open(context, { workingDir: root, env: { PATH: `${path}:/usr/bin:/bin` } });
  // Before these directories are cached.
  await symlink(join(home, "private/bin/tool"), join(root, "bin/tool"));
  await symlink(join(home, "private/bin/tool"), join(root, "bin/next"));
  const { stdout } = await sandbox.exec("into; tool; out; ls -A ~; grep -rls secret ~");
  expect(stdout).toBe("into\ntools\nwork\n");
});

test("an isolated command of any user has no capabilities, and cannot remove mounts that protect files", async (context) => {
  const sandbox = await open(context);
  const { stdout } = await sandbox.exec(
    `grep -E '^Cap(Prm|Eff)' /proc/self/status | tr -d '\\n\\t'; echo
     mount -o remount,rw,bind /usr 2>/dev/null && echo remounted; umount /etc/shadow 2>/dev/null && echo uncovered
     unshare -Urm mount -o remount,rw,bind /usr 2>/dev/null && echo remounted in a namespace
     find /etc -type f ! -perm -004 -size +0 2>/dev/null; cat /etc/shadow /etc/ssl/private/* 2>/dev/null`,
  );
  expect(stdout).toBe("CapPrm:0000000000000000CapEff:0000000000000000\n");
});

test("the variables of this process are hidden from an isolated command, and from no other", async (context) => {
  const sandbox = await open(context);
  if (process.platform !== "linux") skipBecause(context, "only Linux has /proc");
  const known = new Set(Object.keys(await variablesOf(sandbox, "self")));
  const [secret] = Object.entries(parse(await readFile("/proc/self/environ", "utf8"))).filter(
    ([name]) => !known.has(name),
  );
  const [name = ""] = secret ?? [];
  expect(name).not.toBe("");
  const free = await localBackend.open({ isolation: "off" });
  onTestFinished(() => free.close());
  expect(await variablesOf(free, String(process.pid))).toHaveProperty([name]);
  for (const process of [String(globalThis.process.pid), "$PPID", "1"]) {
    expect(await variablesOf(sandbox, process)).not.toHaveProperty([name]);
  }
});

test("a store and Skein's home are hidden in a workspace that holds them, from commands and from file methods", async (context) => {
  const root = join(directory, "work");
  await mkdir(join(root, ".skein"), { recursive: true });
  await writeFile(join(root, ".skein/token"), "token");
  await using store = await openSqliteStore({ path: join(root, "data/skein.db"), create: true });
  await store.create(createHeader({ userId: "secret-user" }));
  const sandbox = await open(context, { workingDir: root });
  const { stdout } = await sandbox.exec("ls -A .skein; cat data/*; cp data/* copy; mv data moved; ls -A");
  expect(stdout).toBe(".skein\ndata\n");
  expect((await sandbox.exec("grep -rl secret-user . ; grep -rl token .")).stdout).toBe("");
  for (const path of ["data/skein.db", "data/skein.db-wal", ".skein/token"]) {
    await expect(sandbox.readFile(path)).rejects.toMatchObject({ kind: "not_permitted" });
    await expect(sandbox.writeFile(path, "")).rejects.toMatchObject({ kind: "not_permitted" });
  }
  for (const path of ["data", ".skein"]) {
    await expect(sandbox.remove(path)).rejects.toMatchObject({ kind: "not_permitted" });
  }
  expect((await sandbox.list(".", { recursive: true })).map(({ path }) => path)).toEqual(["data"]);
  expect((await store.list({ userId: "secret-user" })).items).toHaveLength(1);
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
  const free = await localBackend.open({ isolation: "off" });
  onTestFinished(() => free.close());
  expect((await free.runCode("javascript", program(`${port}, "127.0.0.1"`))).stdout).toBe("connected\n");
  // An isolated sandbox with network access reaches it, too, and can resolve names.
  const connected = await open(context, { network: true });
  expect((await connected.runCode("javascript", program(`${port}, "127.0.0.1"`))).stdout).toBe("connected\n");
  expect((await connected.exec("cat /etc/resolv.conf")).stdout).toBe(await readFile("/etc/resolv.conf", "utf8"));
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

test("auto isolates if possible and otherwise warns once; required refuses; the older names mean the same", async (context) => {
  await open(context);
  const reach = async (isolation: NonNullable<SandboxSpec["isolation"]>, network?: boolean) =>
    localBackend.reach?.({ isolation, workingDir: directory, ...(network === undefined ? {} : { network }) });
  const apart = { directory, isolated: true, network: false };
  const free = { directory, isolated: false, network: true };
  for (const word of ["auto", "required", "bubblewrap"] as const) expect(await reach(word)).toEqual(apart);
  for (const word of ["off", "none"] as const) expect(await reach(word)).toEqual(free);
  expect(await reach("auto", true)).toEqual({ ...apart, network: true });
  expect(await localBackend.reach?.({})).toEqual({ directory: null, isolated: true, network: false });

  vi.resetModules();
  const { localBackend: fresh } = await import("./local-backend.ts");
  stubEnv("PATH", directory);
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  for (let round = 0; round < 2; round++) {
    const sandbox = await fresh.open({ workingDir: directory });
    expect((await sandbox.exec(["/bin/sh", "-c", "echo runs"])).stdout).toBe("runs\n");
    await sandbox.close();
    expect(await fresh.reach?.({ workingDir: directory })).toEqual(free);
  }
  expect(warn.mock.calls).toEqual([
    [
      expect.stringMatching(/not isolated.*install the package bubblewrap/),
      { type: "SkeinWarning", code: "SKEIN_NOT_ISOLATED" },
    ],
  ]);
  for (const isolation of ["required", "bubblewrap"] as const) {
    await expect(fresh.open({ isolation })).rejects.toMatchObject({ kind: "unsupported" });
  }
});

test("names the package to install without bubblewrap, and the problem if it does not work", async () => {
  stubEnv("PATH", directory);
  const opening = () => localBackend.open({ isolation: "required" });
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

test("a failed opening leaves no temporary directory", async () => {
  const temporary = join(directory, "tmp");
  await mkdir(temporary);
  stubEnv("PATH", directory);
  stubEnv("TMPDIR", temporary);
  await expect(localBackend.open({ isolation: "required" })).rejects.toMatchObject({ kind: "unsupported" });
  expect(await readdir(temporary)).toEqual([]);
});
