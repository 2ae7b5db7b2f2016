import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, lstat, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { createHeader } from "../src/session/log/header.ts";
import { openStore } from "../src/stores/open-store.ts";
import { builtProgram } from "./cli/run-skein.ts";
import { makeDirectory, say } from "./moving/sample-store.ts";
import { skipBecause } from "./skip.ts";

const PROGRAM = fileURLToPath(new URL("./faults/programs/write-files.mjs", import.meta.url));
const NOBODY = 65_534;

/** A directory that everyone may look into, as a project or a mounted volume often is. */
async function openDirectory(): Promise<string> {
  const directory = await makeDirectory();
  await chmod(directory, 0o755);
  await mkdir(join(directory, "tmp"));
  await chmod(join(directory, "tmp"), 0o755);
  return directory;
}

/** Starts a program under a umask, with its home and its temporary files below a directory. */
function start(directory: string, umask: string, args: readonly string[]) {
  const env = {
    ...process.env,
    SKEIN_HOME: join(directory, "home"),
    TMPDIR: join(directory, "tmp"),
    NODE_NO_WARNINGS: "1",
  };
  const list = ["-c", 'umask "$0"; exec "$@"', umask, process.execPath, ...args];
  const child = spawn("/bin/sh", list, { env, cwd: directory, stdio: ["pipe", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** Runs `skein` to its end. */
async function skein(directory: string, umask: string, args: readonly string[], input = ""): Promise<string> {
  const child = start(directory, umask, [builtProgram(), ...args]);
  child.stdin.end(input);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [code] = await once(child, "close");
  expect(code, `${args.join(" ")}: ${output}`).toBe(0);
  return output;
}

/** The paths below a directory that others than their owner may use, and how many paths there are. */
async function look(directory: string, below = ""): Promise<{ readonly wide: string[]; readonly seen: string[] }> {
  const [wide, seen]: [string[], string[]] = [[], []];
  for (const name of await readdir(join(directory, below))) {
    const path = join(below, name);
    const stats = await lstat(join(directory, path));
    seen.push(path);
    if ((stats.mode & 0o777) !== (stats.isDirectory() ? 0o700 : 0o600)) {
      wide.push(`${path} ${(stats.mode & 0o777).toString(8)}`);
    }
    // Files in a snapshot or a workspace have the modes of the copied files, or those that a command gave them.
    if (!stats.isDirectory() || /\/files$|\/workspace$/.test(path)) continue;
    const inner = await look(directory, path);
    wide.push(...inner.wide);
    seen.push(...inner.seen);
  }
  return { wide, seen };
}

/** The files below a directory that another account of the machine can read, except for public ones. */
async function readableByNobody(directory: string): Promise<string> {
  const options = { uid: NOBODY, gid: NOBODY } as const;
  const list = [directory, "-mindepth", "1", "(", "-type", "f", "-o", "-type", "d", ")", "-readable", "-print"];
  const child = spawn("find", list, { ...options, stdio: ["ignore", "pipe", "ignore"] });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  await once(child, "close");
  return output.replace(`${join(directory, "tmp")}\n`, "");
}

test.for(["000", "022"])(
  "under the umask %s, files made by the library are private to its owner",
  async (umask, context) => {
    if (process.getuid?.() !== 0) skipBecause(context, "only root can look as another account");
    const directory = await openDirectory();
    const child = start(directory, umask, [PROGRAM, directory]);
    for await (const line of createInterface(child.stdout)) if (line === "made") break;
    // While the stores are open, so that the write-ahead log and the locks exist.
    for (const round of ["open", "closed"]) {
      const { wide, seen } = await look(directory);
      expect([round, wide]).toEqual([round, ["tmp 755"]]);
      const kinds = [
        /\.db$/,
        /\.jsonl$/,
        /__partial__$/,
        /\.index\/.+/,
        /trash/,
        /checkpoints$/,
        /sandboxes\.json$/,
        /snapshot\.json$/,
      ];
      if (round === "open") kinds.push(/-wal$/, /-shm$/, /lease/);
      for (const kind of kinds)
        expect(
          seen.some((path) => kind.test(path)),
          `${kind} in ${seen.join(" ")}`,
        ).toBe(true);
      expect(await readableByNobody(directory)).toBe("");
      if (round === "closed") break;
      child.stdin.end();
      await once(child, "close");
    }
  },
);

test.for(["000", "022"])(
  "under the umask %s, files made by the program are private to its owner",
  async (umask, context) => {
    if (process.getuid?.() !== 0) skipBecause(context, "only root can look as another account");
    const directory = await openDirectory();
    const workspace = await makeDirectory();
    const at = (name: string) => join(directory, name);
    const jsonl = `jsonl:${at("logs")}`;
    const talk = `write hello to a.txt\n/export ${at("talk.md")}\n`;
    const tools = ["--workspace", workspace, "--ask", "never"];
    await skein(directory, umask, ["chat", ...tools], talk);
    await skein(directory, umask, ["chat", ...tools, "--store", jsonl], "hello\n");
    await skein(directory, umask, ["checkpoint", "last", "--files", "--workspace", workspace]);
    await skein(directory, umask, ["export", "last", "--output", at("talk.html")]);
    await skein(directory, umask, ["token", "--user", "ann", "--token-file", at("tokens")]);
    await damage(at("logs"));
    await skein(directory, umask, ["doctor", "--repair", "--store", jsonl]);
    const server = start(directory, umask, [builtProgram(), "serve", "--json", "--port", "0"]);
    await once(createInterface(server.stdout), "line");

    const { wide, seen } = await look(directory);
    expect(wide).toEqual(["tmp 755"]);
    const kinds = [
      /^home\/skein\.db$/,
      /skein\.db-wal$/,
      /snapshot\.json$/,
      /^talk\.md$/,
      /^talk\.html$/,
      /^tokens$/,
      /damaged-/,
    ];
    for (const kind of kinds)
      expect(
        seen.some((path) => kind.test(path)),
        `${kind} in ${seen.join(" ")}`,
      ).toBe(true);
    expect(await readableByNobody(directory)).toBe("");
  },
);

test("files that an earlier version made for everyone are narrowed when their owner writes to them, a directory is not", async () => {
  const directory = await makeDirectory();
  for (const url of [`sqlite:${join(directory, "skein.db")}`, `jsonl:${join(directory, "logs")}`]) {
    const store = await openStore(url);
    await store.create(createHeader({ id: "a" }));
    await store.close();
  }
  const logs = join(directory, "logs");
  const log = join(logs, (await readdir(logs)).find((name) => name.endsWith(".jsonl")) as string);
  const files = [join(directory, "skein.db"), log];
  for (const file of files) await chmod(file, 0o644);
  await chmod(logs, 0o755);
  for (const url of [`sqlite:${join(directory, "skein.db")}`, `jsonl:${logs}`]) {
    await using store = await openStore(url);
    await store.append("a", [say("m")]);
  }
  expect(await Promise.all(files.map(modeOf))).toEqual([0o600, 0o600]);
  expect(await modeOf(logs)).toBe(0o755);
});

test("opening a database again in the same process frees none of the locks that are held on it", async (context) => {
  if (process.platform !== "linux") skipBecause(context, "only Linux lists the locks of a process");
  const path = join(await makeDirectory(), "skein.db");
  await using first = await openStore(`sqlite:${path}`);
  await first.create(createHeader({ id: "a" }));
  const locks = async () =>
    (await readFile("/proc/locks", "utf8")).split("\n").filter((line) => line.includes(` ${process.pid} `)).length;
  const before = await locks();
  await chmod(path, 0o644);
  const second = await openStore(`sqlite:${path}`);
  expect(await locks()).toBeGreaterThanOrEqual(before);
  await second.close();
});

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode & 0o777;
}

async function damage(directory: string): Promise<void> {
  const name = (await readdir(directory)).find((each) => each.endsWith(".jsonl")) as string;
  const path = join(directory, name);
  const lines = (await readFile(path, "utf8")).split("\n");
  lines[1] = `x${lines[1]}`;
  await writeFile(path, lines.join("\n"));
}
