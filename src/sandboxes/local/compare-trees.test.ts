import { chmod, mkdir, mkdtemp, realpath, rm, symlink, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { JsonObject } from "../../internal/json.ts";
import type { FileChange, FileChanges } from "../../session/sandbox/sandbox.ts";
import { compareTrees } from "./compare-trees.ts";
import { PinnedDirectory } from "./pinned-directory.ts";
import { compareSnapshots, removeSnapshot, takeSnapshot } from "./snapshot-store.ts";

let directory: string;
let root: string;

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "skein-compare-")));
  root = join(directory, "root");
  await mkdir(root);
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await rm(directory, { recursive: true, force: true });
  });
});

const at = (path: string): string => join(root, path);

/** The differences after a change of the files. */
async function after(change: () => Promise<unknown>): Promise<FileChanges> {
  const before = await takeSnapshot(root);
  await change();
  return compareSnapshots(before, await takeSnapshot(root));
}

/** The paths with their changes, as `+a ~b -c`. */
function inShort({ changes }: FileChanges): string {
  const signs = { added: "+", changed: "~", removed: "-" };
  return changes.map(({ path, change }) => `${signs[change]}${path}`).join(" ");
}

test("lists what was added, removed and changed, by path, with the old and new text of small files", async () => {
  await mkdir(at("notes"));
  for (const name of ["b.txt", "notes/old.txt", "same.txt"]) await writeFile(at(name), `${name}\n`);
  const found = await after(async () => {
    await writeFile(at("b.txt"), "another\n");
    await rm(at("notes/old.txt"));
    await writeFile(at("notes/new.txt"), "new\n");
    await writeFile(at("notes-2.txt"), "");
  });
  expect(found).toEqual({
    changes: [
      { path: "b.txt", change: "changed", before: "b.txt\n", after: "another\n" },
      { path: "notes-2.txt", change: "added", after: "" },
      { path: "notes/new.txt", change: "added", after: "new\n" },
      { path: "notes/old.txt", change: "removed", before: "notes/old.txt\n" },
    ],
    truncated: false,
  });
});

test("two snapshots of the same files are equal, whatever the times of the files", async () => {
  await mkdir(at("a/b"), { recursive: true });
  await writeFile(at("a/b/c.txt"), "c");
  await symlink("nowhere", at("link"));
  expect(await after(() => utimes(at("a/b/c.txt"), 1, 1))).toEqual({ changes: [], truncated: false });
  const one = await takeSnapshot(root);
  expect(await compareSnapshots(one, one)).toEqual({ changes: [], truncated: false });
});

test("finds different content of the same size and time, also deep in a large file, whose text it omits", async () => {
  const large = Buffer.alloc(200_000, "x");
  const write = async (small: string): Promise<void> => {
    await writeFile(at("small.txt"), small);
    await writeFile(at("large.txt"), large);
    for (const name of ["small.txt", "large.txt"]) await utimes(at(name), 1000, 1000);
  };
  await write("one");
  large[199_999] = 0x79;
  const { changes } = await after(() => write("two"));
  expect(changes).toEqual([
    { path: "large.txt", change: "changed" },
    { path: "small.txt", change: "changed", before: "one", after: "two" },
  ]);
});

test("a different mode of a file or directory is a change, with equal texts", async () => {
  await mkdir(at("closed"));
  await writeFile(at("closed/in.txt"), "in");
  await writeFile(at("run.sh"), "#!/bin/sh\n", { mode: 0o644 });
  const { changes } = await after(async () => {
    await chmod(at("run.sh"), 0o755);
    await chmod(at("closed"), 0o750);
  });
  expect(changes).toEqual([
    { path: "closed", change: "changed" },
    { path: "run.sh", change: "changed", before: "#!/bin/sh\n", after: "#!/bin/sh\n" },
  ]);
});

test("links are compared by their targets, which are not followed", async () => {
  const outside = join(directory, "outside");
  await writeFile(outside, "one");
  await symlink(outside, at("stays"));
  await symlink("a.txt", at("turns"));
  await symlink("/etc", at("becomes-a-file"));
  const { changes } = await after(async () => {
    await writeFile(outside, "two");
    await rm(at("turns"));
    await symlink("../b.txt", at("turns"));
    await rm(at("becomes-a-file"));
    await writeFile(at("becomes-a-file"), "text");
  });
  expect(changes).toEqual([
    { path: "becomes-a-file", change: "changed", before: "/etc", after: "text" },
    { path: "turns", change: "changed", before: "a.txt", after: "../b.txt" },
  ]);
});

test("a file that becomes a directory, and the other way round, is changed, and so is what is below", async () => {
  await writeFile(at("x"), "file");
  await mkdir(at("y"));
  await writeFile(at("y/below"), "below");
  const found = await after(async () => {
    for (const name of ["x", "y"]) await rm(at(name), { recursive: true });
    await mkdir(at("x"));
    await writeFile(at("x/below"), "below");
    await writeFile(at("y"), "file");
  });
  expect(inShort(found)).toBe("~x +x/below ~y -y/below");
  expect(found.changes[0]).toEqual({ path: "x", change: "changed" } satisfies FileChange);
});

test("a directory is listed itself only if none of its items is", async () => {
  await mkdir(at("goes"));
  const found = await after(async () => {
    await rm(at("goes"), { recursive: true });
    await mkdir(at("comes/deep"), { recursive: true });
    await mkdir(at("filled"));
    await writeFile(at("filled/a"), "a");
  });
  expect(inShort(found)).toBe("+comes/deep +filled/a -goes");
});

test("keeps names and texts unchanged, and shows no text of binary files", async () => {
  const names = ["__proto__", "a\nb", "a\\b", "constructor", "\u202Egnp.exe", "…", "-rf"];
  const { changes } = await after(async () => {
    for (const name of names) await writeFile(at(name), "<script>");
    await writeFile(at("nul"), "a\0b");
    await writeFile(at("latin"), Buffer.from([0xe4]));
    await writeFile(at("mark"), "\uFEFFa");
  });
  const shown = new Map(changes.map(({ path, ...rest }) => [path, rest]));
  for (const name of names) expect(shown.get(name), name).toEqual({ change: "added", after: "<script>" });
  expect(shown.get("nul")).toEqual({ change: "added" });
  expect(shown.get("latin")).toEqual({ change: "added" });
  expect(shown.get("mark")).toEqual({ change: "added", after: "\uFEFFa" });
});

test("limits the size of each text, of all texts, and the number of changes", async () => {
  const fits = "x".repeat(64 * 1024);
  const { changes } = await after(async () => {
    await writeFile(at("a-fits"), fits);
    await writeFile(at("a-too-long"), `${fits}x`);
    for (let i = 10; i < 50; i++) await writeFile(at(`b${i}`), fits);
  });
  expect(changes.map(({ path, after: text }) => [path, text !== undefined])).toEqual([
    ["a-fits", true],
    ["a-too-long", false],
    ...Array.from({ length: 40 }, (_, i) => [`b${i + 10}`, i < 31]),
  ]);
  for (let i = 0; i < 999; i++) await writeFile(at(`many-${i}`), "");
  const [none, all] = [join(directory, "none"), root];
  await mkdir(none);
  await using from = await PinnedDirectory.open(none);
  await using to = await PinnedDirectory.open(all);
  const many = await compareTrees(from, to);
  expect([many.changes.length, many.truncated]).toEqual([1000, true]);
});

test("a file of a terabyte that differs at its end in size is not read", async () => {
  await writeFile(at("huge"), "");
  await mkdir(join(directory, "other"));
  await writeFile(join(directory, "other/huge"), "");
  await truncate(at("huge"), 2 ** 40);
  await truncate(join(directory, "other/huge"), 2 ** 40 - 1);
  await using from = await PinnedDirectory.open(root);
  await using to = await PinnedDirectory.open(join(directory, "other"));
  expect(inShort(await compareTrees(from, to))).toBe("~huge");
});

test("refuses a value that is not a snapshot, and a snapshot that was deleted", async () => {
  const snapshot = await takeSnapshot(root);
  const hostile: JsonObject[] = [{}, { ...snapshot, id: "../.." }, { ...snapshot, backend: "other" }];
  for (const value of hostile) {
    await expect(compareSnapshots(value, snapshot)).rejects.toMatchObject({ kind: "unsupported" });
    await expect(compareSnapshots(snapshot, value)).rejects.toMatchObject({ kind: "unsupported" });
  }
  const gone = await takeSnapshot(root);
  await removeSnapshot(gone);
  await expect(compareSnapshots(gone, snapshot)).rejects.toMatchObject({ kind: "file_not_found" });
  await expect(compareSnapshots(snapshot, gone)).rejects.toMatchObject({ kind: "file_not_found" });
});
