import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, type TestContext, test, vi } from "vitest";
import { skipBecause } from "../../../test/skip.ts";
import { type Sandbox, SandboxError, type SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { findBubblewrap } from "./bubblewrap.ts";
import { hostEnvironment } from "./host-environment.ts";
import { findUnmasked } from "./kernel-files.ts";
import { localBackend } from "./local-backend.ts";

/** Files that affect only the process itself and are not tested. */
const OWN: Readonly<Record<string, string>> = {
  "attr/.+": "its labels, where the system has labels, by the rules that the system sets for them",
  autogroup: "how the system divides time among the processes of its session",
  clear_refs: "its own counts of used memory",
  comm: "its own name",
  coredump_filter: "what is in a core file of itself",
  "(uid|gid|projid)_map": "the ids of a user namespace that it has made, in which it is still the same account",
  setgroups: "whether groups can be set in such a namespace",
  loginuid: "the account that it is logged under, which only root can set twice",
  mem: "its own memory",
  "oom_(adj|score_adj)": "how soon it is ended when memory is short; only a capability lets it be later than now",
  sched: "its own statistics",
  timens_offsets: "the clock of a time namespace that it has made",
  timerslack_ns: "how exactly its own timers are kept",
};
const OWN_FILE = new RegExp(`^/proc/\\d+/(task/\\d+/)?(${Object.keys(OWN).join("|")})$`);

/** Opens every file below /proc and /sys for writing, writes nothing, and prints those that could be opened. */
const OPEN_ALL = `
const { closeSync, constants, openSync, readdirSync } = require("node:fs");
let looked = 0;
const visit = (directory) => {
  let items = [];
  try { items = readdirSync(directory, { withFileTypes: true }); } catch {}
  for (const item of items) {
    const path = directory + "/" + item.name;
    if (item.isDirectory()) visit(path);
    else if (item.isFile()) {
      looked++;
      try { closeSync(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)); console.log(path); } catch {}
    }
  }
};
for (const top of ["/proc", "/sys"]) visit(top);
console.log(looked > 500 ? "looked" : "looked at little");`;

/** Settings of each kind, among them one that names a program which the system runs as root. */
const SETTINGS = ["kernel/core_pattern", "kernel/printk", "kernel/panic", "vm/swappiness", "fs/file-max"];

let directory: string;

beforeEach(async () => {
  directory = await realpath(await mkdtemp("/var/tmp/skein-kernel-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

async function open(context: TestContext, spec: SandboxSpec = {}): Promise<Sandbox> {
  if (process.platform !== "linux") skipBecause(context, "only Linux has /proc");
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

// The first runs as the account of this process, which may be root; the second as a separate account if this is root.
describe.for(["a directory of the user's", "a directory that the sandbox made"])("in %s", (kind) => {
  const spec = (): SandboxSpec => (kind === "a directory of the user's" ? { workingDir: directory } : {});

  test("an isolated command cannot write a setting of the kernel, not even the value that it has", async (context) => {
    const sandbox = await open(context, spec());
    const script = SETTINGS.map(
      (name) =>
        `f=/proc/sys/${name}; v=$(cat $f) && [ -n "$v" ] && echo read; (printf '%s\\n' "$v" > $f) && echo wrote $f`,
    ).join("\n");
    const before = await Promise.all(SETTINGS.map((name) => readFile(`/proc/sys/${name}`, "utf8")));
    expect((await sandbox.exec(script)).stdout).toBe("read\n".repeat(SETTINGS.length));
    expect(await Promise.all(SETTINGS.map((name) => readFile(`/proc/sys/${name}`, "utf8")))).toEqual(before);
  });

  test.for([false, true])(
    "an isolated command can open no files of /proc and /sys for writing except those of its own processes (network: %s)",
    async (network, context) => {
      const sandbox = await open(context, { ...spec(), network });
      if (!sandbox.capabilities.languages.includes("javascript"))
        skipBecause(context, "there is no node on this machine");
      const { stdout } = await sandbox.runCode("javascript", OPEN_ALL);
      const opened = stdout.trim().split("\n");
      expect(opened.filter((path) => !OWN_FILE.test(path))).toEqual(["looked"]);
    },
  );

  test("an isolated command cannot read kernel files that are for root only, or about keys", async (context) => {
    const sandbox = await open(context, spec());
    const files = ["kcore", "keys", "key-users", "kallsyms", "kmsg", "timer_list", "slabinfo", "sched_debug"];
    const { stdout } = await sandbox.exec(
      `${files.map((name) => `head -c 1 /proc/${name}`).join("; ")}; ls -A /proc/acpi /proc/scsi 2>/dev/null | grep -v :`,
    );
    expect(stdout.trim()).toBe("");
  });
});

test("a root of / does not open /sys or /proc for writing", async (context) => {
  const sandbox = await open(context, { workingDir: "/" });
  const { stdout } = await sandbox.exec("cat /proc/self/mountinfo");
  expect(findUnmasked(stdout, { readOnly: ["/sys", "/proc/sys"], covered: [] })).toBe(null);
});

test("a command of root cannot create a user namespace, in which it could mount the control groups of its limits", async (context) => {
  if (process.getuid?.() !== 0)
    skipBecause(context, "control groups are root's, so other accounts cannot write to them");
  const sandbox = await open(context, { workingDir: directory });
  if (!(await findBubblewrap(hostEnvironment())).locks) skipBecause(context, "bubblewrap is older than 0.8");
  const { stdout } = await sandbox.exec("id -u; unshare --user echo made; unshare --user --map-root-user echo made");
  expect(stdout).toBe("0\n");
});

test("required is refused, naming the exposed file, if bubblewrap does not protect /proc/sys", async (context) => {
  await open(context);
  const { program } = await findBubblewrap(hostEnvironment());
  await writeFile(
    join(directory, "bwrap"),
    `#!/bin/sh
for each; do shift; [ "$each" = /proc/sys ] && each=/proc/version; set -- "$@" "$each"; done
exec ${program} "$@"\n`,
    { mode: 0o755 },
  );
  stubEnv("PATH", `${directory}:${process.env["PATH"]}`);
  await expect(localBackend.open({ isolation: "required" })).rejects.toMatchObject({
    code: "SANDBOX_FAILED",
    kind: "unsupported",
    message: expect.stringMatching(/^[^.]*\(commands could write to \/proc\/sys\)[^.]*\.$/),
  });
});

test("a mask that was mounted over, or is writable, counts as missing", () => {
  const kernel = { readOnly: ["/proc/sys"], covered: ["/proc/keys"] };
  const line = (path: string, flags: string): string => `1 2 0:3 / ${path} ${flags},nosuid - proc proc rw\n`;
  const keys = line("/proc/keys", "ro");
  expect(findUnmasked(line("/proc/sys", "ro") + keys, kernel)).toBe(null);
  expect(findUnmasked(line("/proc/sys", "rw") + keys, kernel)).toBe("/proc/sys");
  expect(findUnmasked(line("/proc/sys", "ro") + keys + line("/proc/sys", "rw"), kernel)).toBe("/proc/sys");
  expect(findUnmasked(line("/proc/sys", "ro"), kernel)).toBe("/proc/keys");
});
