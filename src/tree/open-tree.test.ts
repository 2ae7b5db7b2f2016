import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SessionStore } from "../session/store.ts";
import { openStore } from "../stores/open-store.ts";
import { createTree, openTree } from "./open-tree.ts";

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-open-tree-"));
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

describe.for(["memory", "jsonl", "sqlite"])("a tree in a %s store", (kind) => {
  const open = (): Promise<SessionStore> =>
    openStore(kind === "memory" ? "memory:" : `${kind}:${join(directory, `sessions-${kind}`)}`);

  test("createTree creates a session with the given header", async () => {
    await using store = await open();
    const tree = await createTree(store, { userId: "user-1", metadata: { topic: "primes" } });
    expect(tree.header).toMatchObject({ userId: "user-1", metadata: { topic: "primes" }, forkedFrom: null });
    await tree.appendMessage({ role: "user", content: "Name a prime above 90." });
    expect(await store.head(tree.id)).toMatchObject({ version: 1, header: { userId: "user-1" } });
  });

  test("openTree opens an existing session with its messages", async () => {
    await using store = await open();
    const made = await createTree(store);
    await made.appendMessage({ role: "user", content: "Name a prime above 90." });
    const opened = await openTree(store, made.id);
    expect((await opened.buildContext()).messages).toEqual([{ role: "user", content: "Name a prime above 90." }]);
    expect(opened.leafId).toBe(made.leafId);
  });

  test("closing the tree does not close its store", async () => {
    await using store = await open();
    const tree = await createTree(store);
    await tree.close();
    expect((await openTree(store, tree.id)).id).toBe(tree.id);
  });

  test("refuses to create an existing id, to open a missing one, and invalid ids", async () => {
    await using store = await open();
    const { id } = await createTree(store);
    await expect(createTree(store, { id })).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    await expect(openTree(store, "nowhere")).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
      message: 'There is no session "nowhere".',
    });
    await expect(openTree(store, "../nowhere")).rejects.toMatchObject({ code: "INVALID_ID" });
    await expect(createTree(store, { id: "" })).rejects.toMatchObject({ code: "INVALID_ID" });
  });
});

test.for([
  ["a URL", "postgres://user:secret@host/database", "string"],
  ["a store that nobody has awaited", openStore("memory:"), "object"],
  ["nothing", undefined, "undefined"],
] as const)("%s is no store, which one sentence says without repeating it", async ([, value, type]) => {
  const sentence = `was given a value of type ${type}, which is no open store; make one with await openStore("sqlite:./sessions.db").`;
  const store = value as unknown as SessionStore;
  const refused = { code: "INVALID_OPTION" };
  await expect(createTree(store)).rejects.toMatchObject({ ...refused, message: `createTree ${sentence}` });
  await expect(openTree(store, "id")).rejects.toMatchObject({ ...refused, message: `openTree ${sentence}` });
});
