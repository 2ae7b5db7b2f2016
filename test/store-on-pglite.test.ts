import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { createHeader, type SessionStore } from "skein";
import { checkHeadIsFold, skipReason, type StoreCase, storeCases } from "skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPgliteStore } from "../examples/store-on-pglite/pglite-store.ts";

// Runs the store cases on the store of the guide "Writing a store", as a user would: on the built package, with public names only.
let directory: string;
let database: PGlite;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-pglite-"));
  // Creating a database takes seconds, so the cases share one; each deletes its rows.
  database = await PGlite.create(join(directory, "cases"), { relaxedDurability: true });
});

afterAll(async () => {
  await database.close();
  await rm(directory, { recursive: true, force: true });
});

describe("the store of the guide", () => {
  // The guide calls blobs and the ledger optional, and its store leaves them out.
  const cases = storeCases.filter(({ needs }) => needs !== "blobs" && needs?.endsWith("ledger") !== true);
  for (const storeCase of cases) test(storeCase.name, () => runCase(storeCase));

  test("reopens a closed database with all sessions, including forks of purged ones", async () => {
    const path = join(directory, "reopened");
    const message = (id: string) => ({ id, type: "message", message: { role: "user", content: id } }) as const;
    {
      await using first = await PGlite.create(path);
      await using store = await openPgliteStore(first);
      await store.create(createHeader({ id: "source" }));
      await store.append("source", [message("a"), message("b")]);
      await store.fork("source", createHeader({ id: "fork" }), { at: "a" });
      await store.append("fork", [message("c")]);
      await store.delete("source");
      expect(await store.purge("9999-01-01T00:00:00.000Z")).toBe(1);
    }
    await using second = await PGlite.create(path);
    await using store = await openPgliteStore(second);
    expect((await store.list()).items.map(({ header }) => header.id)).toEqual(["fork"]);
    const ids: string[] = [];
    for await (const { id } of store.read("fork")) ids.push(id);
    expect(ids).toEqual(["a", "c"]);
    await checkHeadIsFold(store, "fork");
    const rows = await second.query<{ id: string }>("SELECT id FROM skein.entries ORDER BY id");
    expect(rows.rows.map(({ id }) => id)).toEqual(["a", "c"]);
  });
});

async function runCase(storeCase: StoreCase): Promise<void> {
  const handles: SessionStore[] = [];
  const open = async (): Promise<SessionStore> => {
    const store = await openPgliteStore(database);
    handles.push(store);
    return store;
  };
  try {
    const context = { store: await open(), reopen: open };
    expect(skipReason(storeCase, context)).toBe(null);
    await storeCase.run(context);
  } finally {
    await Promise.all(handles.map((store) => store.close()));
    // Deleting sessions cascades to the other tables.
    await database.exec("DELETE FROM skein.entries; DELETE FROM skein.sessions");
  }
}
