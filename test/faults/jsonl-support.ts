import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { createHeader, type SessionHeader } from "../../src/session/log/header.ts";
import type { ReadOptions, SessionStore } from "../../src/session/store.ts";
import { type JsonlStore, type JsonlStoreOptions, openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { entriesOf } from "./store-support.ts";

/** A directory that is removed after the test. */
export async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-faults-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A store that is closed after the test. */
export async function openStore(directory: string, options: Partial<JsonlStoreOptions> = {}): Promise<JsonlStore> {
  const store = await openJsonlStore({ directory, ...options });
  onTestFinished(() => store.close());
  return store;
}

/** A store with one session `a`, and the path of its file. */
export async function makeSession(
  directory: string,
  drafts: readonly EntryDraft[] = [],
  init: Partial<SessionHeader> = {},
): Promise<{ store: JsonlStore; path: string }> {
  const store = await openStore(directory);
  await store.create(createHeader({ id: "a", ...init }));
  for (const draft of drafts) await store.append("a", [draft]);
  return { store, path: (await store.pathOf("a")) as string };
}

export function user(text: string, id?: string): EntryDraft {
  return { type: "message", message: { role: "user", content: text }, ...(id === undefined ? {} : { id }) };
}

export async function idsOf(store: SessionStore, id = "a", options: ReadOptions = {}): Promise<string[]> {
  return (await entriesOf(store, id, options)).map((entry) => entry.id);
}

/** Everything about the files below a directory: names, sizes, times to the nanosecond, and content. */
export async function snapshot(directory: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const visit = async (path: string): Promise<void> => {
    const { mtimeNs, ctimeNs, size, ino } = await stat(path, { bigint: true });
    const names = await readdir(path).catch(() => null);
    const content =
      names === null
        ? createHash("sha256")
            .update(await readFile(path))
            .digest("hex")
        : "";
    found[path] = [ino, size, mtimeNs, ctimeNs, content].join(" ");
    for (const name of names ?? []) await visit(join(path, name));
  };
  await visit(directory);
  return found;
}
