import { readdir, readFile, realpath, rename } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import { makePrivateDirectory, writePrivateFile } from "../../internal/private-file.ts";
import { copyJson, type JsonObject } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { show } from "../../session/errors.ts";
import { type FileChanges, SandboxError } from "../../session/sandbox/sandbox.ts";
import { skeinHome } from "../../tree/home.ts";
import { compareTrees } from "./compare-trees.ts";
import { doing, isMissing } from "./file-failure.ts";
import { copyTree, emptyTree, moveItem, removeTree, scratchName, type TreeSize } from "./file-tree.ts";
import { storePaths } from "./confinement.ts";
import { type FileOwner, PinnedDirectory } from "./pinned-directory.ts";

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const FILES = "files";
const RECORD = "snapshot.json";

/**
 * Keeps a copy of all files below a root under Skein's home, and resolves to its name. It appears there only when it is
 * whole. What a command writes meanwhile may be caught halfway. A home or a store that is an item of the root is no part.
 */
export async function takeSnapshot(root: string): Promise<JsonObject> {
  return doing("take a snapshot", async () => {
    const id = uuidv7();
    const partial = `${id}.partial`;
    await makePrivateDirectory(snapshotDirectory());
    await using store = await PinnedDirectory.open(await realpath(snapshotDirectory()));
    try {
      const size = await fill(store, partial, root);
      const snapshot = copyJson({ backend: "local", id, createdAt: new Date().toISOString(), ...size }) as JsonObject;
      await writePrivateFile(store.at(join(partial, RECORD)), JSON.stringify(snapshot), { flag: "wx" });
      await rename(store.at(partial), store.at(id));
      return snapshot;
    } catch (error) {
      await removeTree(store, partial).catch(() => {});
      throw error;
    }
  });
}

/**
 * Makes the files below a root those of a snapshot.
 *
 * They are copied beside the present ones first, so a failure to copy changes nothing. After a crash in the middle,
 * restoring again brings the same result. Skein's home and stores stay as they are. The files become the `owner`'s.
 */
export async function restoreSnapshot(
  root: string,
  snapshot: JsonObject,
  owner: FileOwner | null = null,
): Promise<void> {
  const id = checkSnapshot(snapshot);
  await doing("restore a snapshot", async () => {
    await using store = await openStore();
    await using source = await openFiles(store, id);
    const own = await ownItems(root);
    await using target = await PinnedDirectory.make(root, owner);
    const staging = scratchName("restore");
    try {
      await target.makeChild(staging, 0o700);
      await using staged = await target.child(staging);
      await copyTree(source, staged, own, { owner });
      await emptyTree(target, [staging, ...own]);
      for (const name of await readdir(staged.realPath)) {
        // Someone may have made one of that name since the directory was emptied.
        await removeTree(target, name);
        await moveItem(staged, target, name);
      }
    } finally {
      await removeTree(target, staging);
    }
  });
}

/** What is different between the files of two snapshots. */
export async function compareSnapshots(from: JsonObject, to: JsonObject): Promise<FileChanges> {
  const [fromId, toId] = [checkSnapshot(from), checkSnapshot(to)];
  return doing("compare two snapshots", async () => {
    await using store = await openStore();
    await using before = await openFiles(store, fromId);
    await using after = await openFiles(store, toId);
    const found = await compareTrees(before, after);
    // One that was removed meanwhile looks as if its files were missing.
    for (const id of [fromId, toId]) await (await openFiles(store, id))[Symbol.asyncDispose]();
    return found;
  });
}

/** Removes a snapshot; false when there was none. */
export async function removeSnapshot(snapshot: JsonObject): Promise<boolean> {
  const id = checkSnapshot(snapshot);
  return doing("delete a snapshot", async () => {
    await using store = await openStore();
    if (store === null) return false;
    const removed = `${id}.removed`;
    try {
      // In one step, so that nobody restores half of it.
      await rename(store.at(id), store.at(removed));
    } catch (error) {
      // One whose removal was cut short is removed to its end.
      if (!isMissing(error)) throw error;
    }
    return await removeTree(store, removed);
  });
}

/** Every snapshot that is whole. */
export async function listSnapshots(): Promise<readonly JsonObject[]> {
  return doing("list snapshots", async () => {
    await using store = await openStore();
    if (store === null) return [];
    const found: JsonObject[] = [];
    for (const name of (await readdir(store.realPath)).filter((item) => ID.test(item))) {
      // One that is removed meanwhile is not whole any more.
      const record = await readRecord(store, name);
      if (record !== null) found.push(record);
    }
    return found;
  });
}

async function fill(store: PinnedDirectory, name: string, root: string): Promise<TreeSize> {
  const own = await ownItems(root);
  await store.makeChild(name, 0o700);
  await using made = await store.child(name);
  await made.makeChild(FILES, 0o700);
  await using files = await made.child(FILES);
  await using source = await PinnedDirectory.open(root);
  return await copyTree(source, files, own);
}

/** The items of a root that are Skein's home or a store, which a snapshot leaves alone. */
async function ownItems(root: string): Promise<readonly string[]> {
  const stores = (await storePaths()).filter((path) => dirname(path) === root).map((path) => basename(path));
  const home = await homeIn(root);
  return home === null ? stores : [home, ...stores];
}

/** The item of a root that is Skein's home, where the snapshots themselves are and often the sessions, too; else null. */
async function homeIn(root: string): Promise<string | null> {
  const path = relative(root, await realpath(skeinHome()));
  if (path === ".." || path.startsWith(`..${sep}`) || isAbsolute(path)) return null;
  if (path !== "" && !path.includes(sep)) return path;
  throw new SandboxError("unsupported", `Skein's home is among the files of ${show(root)}; set SKEIN_HOME elsewhere.`);
}

async function openStore(): Promise<PinnedDirectory | null> {
  try {
    return await PinnedDirectory.open(await realpath(snapshotDirectory()));
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** The files of a snapshot. @throws {SandboxError} `file_not_found` when there is none of that id. */
async function openFiles(store: PinnedDirectory | null, id: string): Promise<PinnedDirectory> {
  const files = store === null ? null : await openWhole(store, id);
  if (files === null) throw new SandboxError("file_not_found", `There is no snapshot ${show(id)}.`);
  return files;
}

/** The files of a snapshot; null when there is none of that id. */
async function openWhole(store: PinnedDirectory, id: string): Promise<PinnedDirectory | null> {
  if ((await readRecord(store, id)) === null) return null;
  try {
    await using snapshot = await store.child(id);
    return await snapshot.child(FILES);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** What was written last of a snapshot, and says that it is whole; else null. */
async function readRecord(store: PinnedDirectory, id: string): Promise<JsonObject | null> {
  try {
    await using snapshot = await store.child(id);
    const record: unknown = JSON.parse(await readFile(snapshot.at(RECORD), "utf8"));
    return (record as JsonObject | null)?.["id"] === id ? (record as JsonObject) : null;
  } catch (error) {
    if (isMissing(error) || error instanceof SyntaxError) return null;
    throw error;
  }
}

/** The id in a snapshot's name. It becomes part of a path, so it must look exactly as those that are made here. */
function checkSnapshot(snapshot: JsonObject): string {
  const { backend, id } = (snapshot ?? {}) as { backend?: unknown; id?: unknown };
  if (backend !== "local" || typeof id !== "string" || !ID.test(id)) {
    throw new SandboxError("unsupported", `The value with the id ${show(id)} is not a snapshot of a local sandbox.`);
  }
  return id;
}

function snapshotDirectory(): string {
  return join(skeinHome(), "snapshots");
}
