import { readdir, readFile, realpath, rename } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import { makePrivateDirectory, writePrivateFile } from "../../internal/private-file.ts";
import { copyJson, type JsonObject } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { show } from "../../session/errors.ts";
import { type FileChanges, SandboxError } from "../../session/sandbox/sandbox.ts";
import { skeinHome } from "../../tree/home.ts";
import { compareTrees } from "./compare-trees.ts";
import { wrapFailure, isMissing } from "./file-failure.ts";
import { copyTree, emptyTree, moveItem, removeTree, scratchName, type TreeSize } from "./file-tree.ts";
import { storePaths } from "./confinement.ts";
import { type FileOwner, PinnedDirectory } from "./pinned-directory.ts";

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const FILES = "files";
const RECORD = "snapshot.json";

/**
 * Copies all files below a root to a snapshot under Skein's home, and resolves to its name. The snapshot becomes visible only
 * when it is complete. Files that a command writes meanwhile may be copied half-written. A Skein home or a store in the root is
 * not copied.
 */
export async function takeSnapshot(root: string): Promise<JsonObject> {
  return wrapFailure("take a snapshot", async () => {
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
 * Replaces the files below a root by those of a snapshot.
 *
 * They are first copied to a staging directory, so a failed copy changes nothing. After a crash, restoring again completes it.
 * Skein's home and stores are not changed. The restored files belong to the `owner`.
 */
export async function restoreSnapshot(
  root: string,
  snapshot: JsonObject,
  owner: FileOwner | null = null,
): Promise<void> {
  const id = checkSnapshot(snapshot);
  await wrapFailure("restore a snapshot", async () => {
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
        // Someone may have created an item of that name since the directory was emptied.
        await removeTree(target, name);
        await moveItem(staged, target, name);
      }
    } finally {
      await removeTree(target, staging);
    }
  });
}

/** The differences between the files of two snapshots. */
export async function compareSnapshots(from: JsonObject, to: JsonObject): Promise<FileChanges> {
  const [fromId, toId] = [checkSnapshot(from), checkSnapshot(to)];
  return wrapFailure("compare two snapshots", async () => {
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
  return wrapFailure("delete a snapshot", async () => {
    await using store = await openStore();
    if (store === null) return false;
    const removed = `${id}.removed`;
    try {
      // Renamed atomically first, so that a half-removed snapshot cannot be restored.
      await rename(store.at(id), store.at(removed));
    } catch (error) {
      // The rename may have happened before an interrupted removal: continue with that one.
      if (!isMissing(error)) throw error;
    }
    return await removeTree(store, removed);
  });
}

/** All complete snapshots. */
export async function listSnapshots(): Promise<readonly JsonObject[]> {
  return wrapFailure("list snapshots", async () => {
    await using store = await openStore();
    if (store === null) return [];
    const found: JsonObject[] = [];
    for (const name of (await readdir(store.realPath)).filter((item) => ID.test(item))) {
      // Skips snapshots that are removed meanwhile.
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

/** The items of a root that are Skein's home or a store; snapshots ignore them. */
async function ownItems(root: string): Promise<readonly string[]> {
  const stores = (await storePaths()).filter((path) => dirname(path) === root).map((path) => basename(path));
  const home = await homeIn(root);
  return home === null ? stores : [home, ...stores];
}

/** The item of a root that is Skein's home, which holds the snapshots and often the sessions; else null. */
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

/** The files of a snapshot. @throws {SandboxError} `file_not_found` if it does not exist. */
async function openFiles(store: PinnedDirectory | null, id: string): Promise<PinnedDirectory> {
  const files = store === null ? null : await openComplete(store, id);
  if (files === null) throw new SandboxError("file_not_found", `There is no snapshot ${show(id)}.`);
  return files;
}

/** The files of a snapshot; null if it does not exist or is not complete. */
async function openComplete(store: PinnedDirectory, id: string): Promise<PinnedDirectory | null> {
  if ((await readRecord(store, id)) === null) return null;
  try {
    await using snapshot = await store.child(id);
    return await snapshot.child(FILES);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** The record of a snapshot; null if it is missing. It is written last, so it marks the snapshot as complete. */
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

/** The id in a snapshot's name. It becomes part of a path, so only ids of exactly our form are accepted. */
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
