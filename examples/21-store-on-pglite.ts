// A store of your own: sessions in PGlite, which is PostgreSQL inside this process. The store is in store-on-pglite/ and is
// built step by step in docs/guides/writing-a-store.md. No API key needed.
import assert from "node:assert/strict";
import { PGlite } from "@electric-sql/pglite";
import { createHeader, createTree } from "skein";
import { openPgliteStore } from "./store-on-pglite/pglite-store.ts";

await using database = await PGlite.create("sessions-in-pglite");
await using store = await openPgliteStore(database);

const tree = await createTree(store, { userId: "ann" });
await tree.appendMessage({ role: "user", content: "Which is the smallest prime above 90?" });
await tree.appendMessage({ role: "user", content: "And the largest below?" });

const [first] = await store.search("smallest prime");
assert.equal(first?.head.header.id, tree.id);
const fork = await store.fork(tree.id, createHeader({ userId: "ann" }), { at: first?.matches[0]?.entryId ?? null });
assert.deepEqual([fork.messageCount, (await store.head(tree.id))?.messageCount], [1, 2]);

// The log is rows, so any SQL client can read it.
const { rows } = await database.query("SELECT id, version, origin_version FROM skein.sessions ORDER BY key");
console.table(rows);
console.log("Two sessions in PGlite; the fork has no entries of its own.");
