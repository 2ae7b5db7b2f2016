import { chmod, cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { JsonObject } from "../../internal/json.ts";
import { listSnapshots, removeSnapshot, restoreSnapshot, takeSnapshot } from "./snapshot-store.ts";

let home: string;
let root: string;

beforeEach(async () => {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "skein-snapshot-")));
  home = join(directory, "home");
  root = join(directory, "root");
  await mkdir(root);
  vi.stubEnv("SKEIN_HOME", home);
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await rm(directory, { recursive: true, force: true });
  });
});

const stored = (snapshot: JsonObject, ...path: string[]): string =>
  join(home, "snapshots", snapshot["id"] as string, ...path);

test("a snapshot is stored under Skein's home, private to its owner, with a record of its content", async () => {
  await mkdir(join(root, "a"));
  await writeFile(join(root, "a/b.txt"), "12345");
  const snapshot = await takeSnapshot(root);
  expect(snapshot).toMatchObject({ backend: "local", files: 1, sizeBytes: 5 });
  expect(await readFile(stored(snapshot, "files/a/b.txt"), "utf8")).toBe("12345");
  expect((await stat(join(home, "snapshots"))).mode & 0o777).toBe(0o700);
  expect(await readdir(join(home, "snapshots"))).toEqual([snapshot["id"]]);
  expect(await removeSnapshot(snapshot)).toBe(true);
  expect(await readdir(join(home, "snapshots"))).toEqual([]);
});

test("a snapshot that cannot be finished leaves nothing behind", async () => {
  await mkdir(home);
  await writeFile(join(home, "snapshots"), "in the way");
  await expect(takeSnapshot(root)).rejects.toMatchObject({ kind: "os_error" });
  await rm(join(home, "snapshots"));
  await expect(takeSnapshot(join(root, "nowhere"))).rejects.toMatchObject({ kind: "os_error" });
  expect(await readdir(join(home, "snapshots"))).toEqual([]);
});

test("a snapshot without its record, which is written last, does not count", async () => {
  await writeFile(join(root, "kept.txt"), "kept");
  const snapshot = await takeSnapshot(root);
  await rm(stored(snapshot, "snapshot.json"));
  await expect(restoreSnapshot(root, snapshot)).rejects.toMatchObject({ kind: "file_not_found" });
  await writeFile(stored(snapshot, "snapshot.json"), `{"id":`);
  await expect(restoreSnapshot(root, snapshot)).rejects.toMatchObject({ kind: "file_not_found" });
  expect(await readdir(root)).toEqual(["kept.txt"]);
});

test("lists every complete snapshot, while others are removed and other files are opened", async () => {
  const taken: JsonObject[] = [];
  for (let index = 0; index < 20; index++) taken.push(await takeSnapshot(root));
  const [broken, ...others] = taken as [JsonObject, ...JsonObject[]];
  const removed = others.splice(0, 5);
  await writeFile(stored(broken, "snapshot.json"), "{");
  const listings = Array.from({ length: 20 }, async () => {
    const listing = await listSnapshots();
    // Reuses the number of the file descriptor that the listing has closed.
    expect(await readFile(stored(others[0] as JsonObject, "snapshot.json"), "utf8")).not.toBe("");
    return listing;
  });
  await Promise.all(removed.map(removeSnapshot));
  for (const listing of await Promise.all(listings)) expect(listing).toEqual(expect.arrayContaining(others));
  expect(await listSnapshots()).toEqual(others);
});

test("a restore that cannot copy changes no files, and an interrupted one can be repeated", async () => {
  await writeFile(join(root, "a.txt"), "a");
  await mkdir(join(root, "b"));
  const snapshot = await takeSnapshot(root);
  await writeFile(join(root, "c.txt"), "c");
  await rm(stored(snapshot, "files"), { recursive: true });
  await writeFile(stored(snapshot, "files"), "damaged");
  await expect(restoreSnapshot(root, snapshot)).rejects.toMatchObject({ kind: "file_not_found" });
  expect((await readdir(root)).sort()).toEqual(["a.txt", "b", "c.txt"]);

  const whole = await takeSnapshot(root);
  // The state after a crash between emptying the root and the last rename.
  await mkdir(join(root, ".skein-01234567-89ab-7cde-8f01-23456789abcd.restore"));
  await writeFile(join(root, ".skein-01234567-89ab-7cde-8f01-23456789abcd.restore/c.txt"), "c");
  await rm(join(root, "a.txt"));
  await chmod(join(root, "b"), 0o555);
  await restoreSnapshot(root, whole);
  expect((await readdir(root)).sort()).toEqual(["a.txt", "b", "c.txt"]);
  expect((await stat(join(root, "b"))).mode & 0o777).not.toBe(0o555);
});

test("Skein's home in a root is not part of its snapshots, is kept by a restore, and is refused in a subdirectory", async () => {
  vi.stubEnv("SKEIN_HOME", join(root, ".skein"));
  await writeFile(join(root, "a.txt"), "a");
  const snapshot = await takeSnapshot(root);
  expect(snapshot).toMatchObject({ files: 1 });
  await writeFile(join(root, ".skein/sessions.db"), "later");
  await rm(join(root, "a.txt"));
  await restoreSnapshot(root, snapshot);
  expect((await readdir(root)).sort()).toEqual([".skein", "a.txt"]);
  expect(await readFile(join(root, ".skein/sessions.db"), "utf8")).toBe("later");

  // A snapshot from when the home was elsewhere may contain an item of that name.
  vi.stubEnv("SKEIN_HOME", home);
  const earlier = await takeSnapshot(root);
  await cp(join(home, "snapshots"), join(root, ".skein/snapshots"), { recursive: true });
  await writeFile(join(root, ".skein/sessions.db"), "latest");
  vi.stubEnv("SKEIN_HOME", join(root, ".skein"));
  await restoreSnapshot(root, earlier);
  expect(await readFile(join(root, ".skein/sessions.db"), "utf8")).toBe("latest");

  for (const inside of [root, join(root, "a/b")]) {
    vi.stubEnv("SKEIN_HOME", inside);
    await expect(takeSnapshot(root)).rejects.toMatchObject({ kind: "unsupported" });
  }
});

test("copies many files and deep directories", async () => {
  const deep = join(root, ...Array.from({ length: 60 }, (_, index) => `level-${index}`));
  await mkdir(deep, { recursive: true });
  await writeFile(join(deep, "bottom.txt"), "bottom");
  await mkdir(join(root, "many"));
  await Promise.all(Array.from({ length: 200 }, (_, index) => writeFile(join(root, "many", `${index}`), `${index}`)));
  const snapshot = await takeSnapshot(root);
  expect(snapshot).toMatchObject({ files: 201 });
  await rm(root, { recursive: true });
  await restoreSnapshot(root, snapshot);
  expect(await readFile(join(deep, "bottom.txt"), "utf8")).toBe("bottom");
  expect((await readdir(join(root, "many"))).length).toBe(200);
});
