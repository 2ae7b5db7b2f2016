import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import type { EntryDraft } from "../../session/log/entry.ts";
import { SessionError } from "../../session/errors.ts";
import { createHeader } from "../../session/log/header.ts";
import { parseSearch } from "../../session/search.ts";
import type { SessionQuery, SessionStore } from "../../session/store.ts";
import { listedHeads } from "../complete/list-pages.ts";
import { searchByScan } from "../complete/search-by-scan.ts";
import { openSqliteStore } from "./sqlite-store.ts";
import { expressionOf, trigramText } from "./search-index.ts";

const user = (text: string): EntryDraft => ({ type: "message", message: { role: "user", content: text } });

async function openStore(): Promise<SessionStore> {
  const directory = await mkdtemp(join(tmpdir(), "skein-sqlite-"));
  const store = await openSqliteStore({ path: join(directory, "skein.db") });
  onTestFinished(async () => {
    await store.close();
    await rm(directory, { recursive: true, force: true });
  });
  return store;
}

/** The results of a store without an index. */
async function scan(store: SessionStore, text: string, query: SessionQuery = {}): Promise<unknown> {
  const { limit = 100, ...filter } = query;
  return searchByScan(listedHeads(store, filter), (sessionId) => store.read(sessionId), parseSearch(text), limit);
}

async function finds(store: SessionStore, text: string, query: SessionQuery = {}): Promise<string[]> {
  const hits = await store.search(text, query);
  expect(hits).toEqual(await scan(store, text, query));
  return hits.map(({ head }) => head.header.id).sort();
}

// Few letters, so that terms are found often, with special cases of lower case, UTF-16, SQLite and its query language.
const letters = [
  "a",
  "b",
  "B",
  "é",
  "É",
  "İ",
  "ß",
  "ı",
  "Σ",
  "ς",
  "😀",
  "\ud83d",
  "\ude00",
  "\0",
  '"',
  "*",
  " ",
  "\n",
  "-",
];
const text = fc.array(fc.constantFrom(...letters), { maxLength: 12 }).map((parts) => parts.join(""));
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant("say" as const), session: fc.nat(3), text }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("name" as const), session: fc.nat(3), text }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("fork" as const), session: fc.nat(3), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("delete" as const), session: fc.nat(3) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("search" as const), text: fc.array(text, { maxLength: 2 }) }) },
);

test("finds exactly what a scan of every session finds", async () => {
  const store = await openStore();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const userId = `run-${run++}`;
      const sessions = [0, 1, 2, 3].map((index) => `${userId}-${index}`);
      for (const id of sessions) await store.create(createHeader({ id, userId, cwd: "/ab/É" }));
      for (const each of steps) {
        const id = "session" in each ? (sessions[each.session] as string) : "";
        try {
          if (each.type === "say") await store.append(id, [user(each.text)]);
          if (each.type === "name") await store.append(id, [{ type: "session_info", name: each.text }]);
          if (each.type === "delete") await store.delete(id);
          if (each.type === "fork") {
            const entries = [];
            for await (const entry of store.read(id)) entries.push(entry.id);
            const fork = createHeader({ id: `${id}-fork-${each.at}`, userId });
            await store.fork(id, fork, { at: entries[each.at % (entries.length + 1)] ?? null });
            sessions[each.session] = fork.id;
          }
        } catch (error) {
          if (!(error instanceof SessionError)) throw error;
        }
        if (each.type !== "search" || each.text.every((word) => word.replaceAll('"', "").trim() === "")) continue;
        const words = each.text.map((word) => `"${word.replaceAll('"', "")}"`).join(" ");
        for (const query of [{ userId }, { userId, deleted: true }, { userId, limit: 1 }]) {
          expect(await store.search(words, query)).toEqual(await scan(store, words, query));
        }
      }
    }),
    { numRuns: 60 },
  );
});

test("finds words of any length, phrases and patterns, wherever in a session they occur", async () => {
  const store = await openStore();
  await store.create(createHeader({ id: "letters", cwd: "/home/alpha" }));
  await store.append("letters", [user("The quick brown fox"), user("jumps over THE lazy dog"), user("again: quick")]);
  await store.create(createHeader({ id: "numbers" }));
  await store.append("numbers", [user("one two"), { type: "session_info", name: "Quick sums" }]);
  expect(await finds(store, "quick")).toEqual(["letters", "numbers"]);
  expect(await finds(store, "quick lazy")).toEqual(["letters"]);
  expect(await finds(store, '"brown fox"')).toEqual(["letters"]);
  expect(await finds(store, '"fox jumps"')).toEqual([]);
  expect(await finds(store, "x")).toEqual(["letters"]);
  expect(await finds(store, "alpha dog")).toEqual(["letters"]);
  expect(await finds(store, "re:qu.ck\\s+\\w")).toEqual(["letters", "numbers"]);
  expect(await finds(store, "two re:^one")).toEqual(["numbers"]);
  expect(await finds(store, "quicker")).toEqual([]);
});

test("finds in a fork what it inherited, but not what its source appended later", async () => {
  const store = await openStore();
  await store.create(createHeader({ id: "source" }));
  const [first] = (await store.append("source", [user("inherited words")])).entries;
  await store.append("source", [user("later words")]);
  await store.search("words");
  await store.fork("source", createHeader({ id: "fork" }), { at: first?.id as string });
  await store.append("fork", [user("own words")]);
  expect(await finds(store, "inherited")).toEqual(["fork", "source"]);
  expect(await finds(store, "later")).toEqual(["source"]);
  expect(await finds(store, "inherited own")).toEqual(["fork"]);
  await store.delete("source");
  await store.purge("2999-01-01T00:00:00.000Z");
  expect(await finds(store, "inherited words")).toEqual(["fork"]);
  expect(await finds(store, "later")).toEqual([]);
});

test("finds a session by its current name, not by an earlier one", async () => {
  const store = await openStore();
  await store.create(createHeader({ id: "a" }));
  expect(await finds(store, "first-name")).toEqual([]);
  await store.append("a", [{ type: "session_info", name: "first-name" }]);
  expect(await finds(store, "first-name")).toEqual(["a"]);
  await store.append("a", [{ type: "session_info", name: "second-name" }]);
  expect(await finds(store, "first-name")).toEqual([]);
  expect(await finds(store, "second-name")).toEqual(["a"]);
});

test("indexes every trigram of every term that a text contains", () => {
  fc.assert(
    fc.property(text, text, text, (before, term, after) => {
      const expression = term.trim() === "" ? null : expressionOf({ type: "text", text: term.toLowerCase() });
      fc.pre(expression !== null && `${before}${term}${after}`.toLowerCase().includes(term.toLowerCase()));
      const trigrams = [...(expression as string).matchAll(/"((?:[^"]|"")+)"(?: AND |$)/gs)];
      const whole = trigramText(`${before}${term}${after}`);
      for (const [, trigram = ""] of trigrams) expect(whole).toContain(trigram.replaceAll('""', '"'));
    }),
  );
});
