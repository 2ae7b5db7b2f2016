import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Entry, EntryDraft } from "../../src/session/log/entry.ts";
import type { SessionHead } from "../../src/session/log/fold.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { Checkpoint, SessionStore } from "../../src/session/store.ts";
import { digestOf } from "../../src/stores/doctor/log-digest.ts";
import type { Backend } from "../store-backends.ts";

/** Opens a store of a kind in a new directory. Both are removed after the test. */
export async function openIn(backend: Backend): Promise<SessionStore> {
  const store = await backend.open(await makeDirectory());
  onTestFinished(() => store.close());
  return store;
}

/** Creates a directory that is removed after the test. */
export async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-moving-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

export function say(id: string, content = `This is ${id}.`): EntryDraft {
  return { id, type: "message", message: { role: "user", content } };
}

export function checkpointAt(head: SessionHead, id: string): Checkpoint {
  const { version, leafId, header } = head;
  const createdAt = "2024-05-05T05:05:05.005Z";
  return { id, sessionId: header.id, version, leafId, createdAt, parentCheckpointId: null, metadata: { of: id } };
}

/**
 * Creates sessions of all kinds: `main` with branches, labels, an entry type of a later version and checkpoints; its fork
 * `side`, and the fork `deep` of that; `path`, created from one branch of `main`; `orphan`, a fork whose source is deleted;
 * `empty`; and `gone`, which is deleted.
 */
export async function fillStore(store: SessionStore): Promise<void> {
  const main = createHeader({ id: "main", userId: "user:bob", cwd: "/work", metadata: { a: [1, null] } });
  await store.create(main, { entries: [say("m1"), { type: "later", node: true, id: "m2" } as unknown as EntryDraft] });
  await store.append("main", [say("m3"), { id: "l1", type: "label", targetId: "m1", label: "start" }]);
  const early = checkpointAt((await store.head("main")) as SessionHead, "early");
  await store.append("main", [{ id: "back", type: "leaf", targetId: "m1" }, say("m4"), say("m5")]);
  await store.append("main", [{ id: "name", type: "session_info", name: "\u202eMain\u0007" }, say("m6")], {
    onto: "m3",
  });
  const late = checkpointAt((await store.head("main")) as SessionHead, "late");
  await store.saveCheckpoint(late);
  await store.saveCheckpoint(early);
  const forkedFrom = { sessionId: "main", entryId: null, version: 0, branchName: "aside" };
  await store.fork("main", createHeader({ id: "side", userId: "ann", forkedFrom }), { at: "m4" });
  await store.append("side", [say("s1"), { id: "s2", type: "status", status: "closed", reason: "done" }]);
  await store.fork("side", createHeader({ id: "deep" }), { at: "m3" });
  await store.append("deep", [say("d1")]);
  await store.fork("main", createHeader({ id: "void" }), { at: null });
  const path = { sessionId: "main", entryId: "m4", version: 2 };
  const branch = ["m1", "m4"].map((id) => store.getEntry("main", id));
  const entries = (await Promise.all(branch)) as Entry[];
  await store.create(createHeader({ id: "path", forkedFrom: path }), { entries });
  await store.create(createHeader({ id: "source" }), { entries: [say("o1"), say("o2")] });
  await store.fork("source", createHeader({ id: "orphan" }));
  await store.append("orphan", [say("o3")]);
  await store.delete("source");
  await store.create(createHeader({ id: "empty" }));
  await store.create(createHeader({ id: "gone" }), { entries: [say("g1")] });
  await store.delete("gone");
}

/** The content of all live sessions of a store that must be the same in a copy. */
export async function contentsOf(store: SessionStore): Promise<Record<string, unknown>> {
  const contents: Record<string, unknown> = {};
  for (const item of (await store.list()).items) {
    const { updatedAt: _, ...head } = item;
    const { id } = head.header;
    contents[id] = { head, digest: await digestOf(store, id), checkpoints: await store.listCheckpoints(id) };
  }
  return contents;
}
