import { spawn } from "node:child_process";
import { renameSync, symlinkSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { removeAll } from "../../../test/remove-tree.ts";
import { skipBecause } from "../../../test/skip.ts";
import { copyTree, moveItem, removeTree } from "./file-tree.ts";
import { PinnedDirectory } from "./pinned-directory.ts";
import { restoreSnapshot, takeSnapshot } from "./snapshot-store.ts";

const ROUNDS = 20;
const LONG_AGO = new Date("2001-01-01T00:00:00Z");

let directory: string;
let outside: string;

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "skein-file-tree-")));
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await removeAll(directory);
  });
  outside = join(directory, "outside");
  for (const name of ["outside", "from", "to", "aside"]) await mkdir(join(directory, name));
  await writeFile(join(outside, "secret.txt"), "secret", { mode: 0o600 });
  await chmod(outside, 0o500);
  for (const path of ["outside/secret.txt", "outside"]) await utimes(join(directory, path), LONG_AGO, LONG_AGO);
});

/** The state outside that must not change: modes, times, names and text. */
async function stateOutside(): Promise<unknown> {
  const states = [];
  for (const path of [outside, join(outside, "secret.txt")]) {
    const { mode, mtimeMs } = await stat(path);
    states.push([(mode & 0o7777).toString(8), mtimeMs]);
  }
  return [states, await readdir(outside), await readFile(join(outside, "secret.txt"), "utf8")];
}

/** A directory whose item is replaced by a link at the n-th use of its name: the worst moment of each step. */
function exchanging(
  pinned: PinnedDirectory,
  path: string,
  name: string,
  turn: number,
  target: string,
): PinnedDirectory {
  let turns = 0;
  return Object.create(pinned, {
    at: {
      value: (item: string) => {
        if (item === name && ++turns === turn) {
          try {
            renameSync(join(path, name), join(directory, "aside", `${turn}-${name}`));
          } catch {
            // It does not exist at this moment: create the link anyway.
          }
          symlinkSync(target, join(path, name));
        }
        return pinned.at(item);
      },
    },
  }) as PinnedDirectory;
}

for (const what of ["a file", "a directory"]) {
  for (const side of ["from", "to"]) {
    test(`no step of copying, moving and removing ${what} follows a link that takes its place in "${side}"`, async (context) => {
      if (process.platform !== "linux") skipBecause(context, "only Linux names open directories");
      const before = await stateOutside();
      const target = what === "a file" ? join(outside, "secret.txt") : outside;
      const operations = {
        copy: (from: PinnedDirectory, to: PinnedDirectory) => copyTree(from, to),
        move: (from: PinnedDirectory, to: PinnedDirectory) => moveItem(from, to, "item"),
        remove: (from: PinnedDirectory) => removeTree(from, "item"),
      };
      for (const operation of Object.values(operations)) {
        for (let turn = 1; turn <= 6; turn++) {
          for (const each of ["from", "to", "aside"]) {
            await removeAll(join(directory, each));
            await mkdir(join(directory, each));
          }
          if (what === "a file") await writeFile(join(directory, "from/item"), "inside", { mode: 0o777 });
          else {
            await mkdir(join(directory, "from/item/deep"), { recursive: true });
            await chmod(join(directory, "from/item"), 0o555);
          }
          await using from = await PinnedDirectory.open(join(directory, "from"));
          await using to = await PinnedDirectory.open(join(directory, "to"));
          const held = exchanging(side === "from" ? from : to, join(directory, side), "item", turn, target);
          await operation(side === "from" ? held : from, side === "to" ? held : to).catch(() => {});
          expect(await stateOutside()).toEqual(before);
        }
      }
    });
  }
}

test("a failed copy rejects only after all of its items have ended, so that none continues in closed directories", async () => {
  await mkdir(join(directory, "from/many"));
  for (let index = 0; index < 100; index++) await writeFile(join(directory, `from/many/${index}`), "");
  for (const path of ["from/taken", "to/taken"]) await writeFile(join(directory, path), "");
  await using from = await PinnedDirectory.open(join(directory, "from"));
  await using to = await PinnedDirectory.open(join(directory, "to"));
  await expect(copyTree(from, to)).rejects.toMatchObject({ code: "EEXIST" });
  expect(await readdir(join(directory, "to/many"))).toHaveLength(100);
});

test("a process that replaces restored items by links cannot change modes or times outside", async (context) => {
  if (process.platform !== "linux") skipBecause(context, "only Linux names open directories");
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
  const root = join(directory, "root");
  for (let index = 0; index < 8; index++) {
    await mkdir(join(root, `d${index}`), { recursive: true });
    await writeFile(join(root, `d${index}/f`), "f", { mode: 0o777 });
    await chmod(join(root, `d${index}`), 0o777);
    await chmod(join(root, `d${index}/f`), 0o777);
    await writeFile(join(root, `f${index}`), "f");
    await chmod(join(root, `f${index}`), 0o777);
  }
  const snapshot = await takeSnapshot(root);
  const before = await stateOutside();
  const attacker = spawn(process.execPath, ["-e", ATTACK, root, outside, join(directory, "aside")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void attacker.kill("SIGKILL"));
  await new Promise((resolve) => attacker.stdout.once("data", resolve));
  for (let round = 0; round < ROUNDS; round++) {
    await restoreSnapshot(root, snapshot).catch(() => {});
    expect(await stateOutside()).toEqual(before);
  }
  const ended = new Promise((resolve) => attacker.once("exit", resolve));
  attacker.kill("SIGKILL");
  await ended;
  // Without the attacker, the same restore completes.
  await restoreSnapshot(root, snapshot);
  expect(await readdir(root)).toHaveLength(16);
  expect((await stat(join(root, "d0"))).mode & 0o777).toBe(0o777);
  expect(await stateOutside()).toEqual(before);
});

/** Replaces items that appear below the root and in the staging directory of a restore by links. */
const ATTACK = `
const { readdirSync, renameSync, symlinkSync, writeSync } = require("node:fs");
const [root, outside, aside] = process.argv.slice(1);
writeSync(1, "ready");
let count = 0;
const swap = (directory, name) => {
  try {
    renameSync(directory + "/" + name, aside + "/" + count++);
    symlinkSync(outside + (name.startsWith("f") ? "/secret.txt" : ""), directory + "/" + name);
  } catch {}
};
for (;;) {
  try {
    for (const name of readdirSync(root)) {
      if (!name.startsWith(".skein-")) { if (count % 3 === 0) swap(root, name); continue; }
      const staging = root + "/" + name;
      for (const each of readdirSync(staging)) swap(staging, each);
    }
  } catch {}
}`;
