import assert from "node:assert/strict";
import { createHeader } from "../../session/log/header.ts";
import type { SessionQuery, SessionStore } from "../../session/store.ts";
import type { StoreCase } from "../store-case.ts";
import { headOf, make, refuses } from "./store-checks.ts";
import { assistant, label, leaf, name, status, user } from "./drafts.ts";

/** Cases: search. */
export const searchCases: readonly StoreCase[] = [
  {
    name: "finds sessions in which every word occurs somewhere, in any case and order",
    async run({ store }) {
      await makeTwo(store);
      await finds(store, "quick", ["fox"]);
      await finds(store, "QUICK fox", ["fox"]);
      await finds(store, "jumps brown", ["fox"]);
      await finds(store, "dog", ["dog", "fox"]);
      await finds(store, "quick cat", []);
      await finds(store, "uick", ["fox"]);
      await finds(store, "nothing-of-the-kind", []);
    },
  },
  {
    name: "finds exact phrases, including the characters between words",
    async run({ store }) {
      await makeTwo(store);
      await finds(store, '"quick brown"', ["fox"]);
      await finds(store, '"brown quick"', []);
      await finds(store, '"Lazy Dog" jumps', ["fox"]);
      await finds(store, "100%", ["dog"]);
      await finds(store, "a_b", ["dog"]);
      await finds(store, "axb", []);
      await finds(store, "o'clock", ["dog"]);
      await finds(store, "naïve", ["dog"]);
      await finds(store, "日本語", ["dog"]);
      await finds(store, "本", ["dog"]);
    },
  },
  {
    name: "finds regular expressions, in any case, alone and after words",
    async run({ store }) {
      await makeTwo(store);
      await finds(store, "re:qu[a-z]+k\\s+BROWN", ["fox"]);
      await finds(store, "jumps re:^the lazy", ["fox"]);
      await finds(store, "re:^brown", []);
      await finds(store, "re:\\d{3}%", ["dog"]);
      await finds(store, "dog re:lazy|quick", ["fox"]);
    },
  },
  {
    name: "refuses an invalid regular expression, and a search that is empty or too long",
    async run({ store }) {
      await makeTwo(store);
      for (const text of ["re:(", "re:[z-a]", "", "   ", '""', "x".repeat(1001), 7, null]) {
        await refuses(store.search(text as string), "INVALID_QUERY");
      }
    },
  },
  {
    name: "searches names, ids, directories and messages, and each term may match in a different one",
    async run({ store }) {
      await makeTwo(store);
      await make(store, "third-session", { cwd: "/srv/Project" });
      await store.append("third-session", [name("Holiday plans"), user("book a hotel")]);
      await finds(store, "holiday", ["third-session"]);
      await finds(store, "third-", ["third-session"]);
      await finds(store, "srv/project", ["third-session"]);
      await finds(store, "hotel holiday re:^third", ["third-session"]);
      await store.append("third-session", [name("Renamed")]);
      await finds(store, "holiday", []);
    },
  },
  {
    name: "searches messages of all roles and branches, and no other entries",
    async run({ store }) {
      await make(store, "a");
      await store.append("a", [
        user("spoken", { id: "1" }),
        { type: "message", message: { role: "tool", toolCallId: "t", name: "read", content: "toolish" } },
        {
          type: "message",
          message: {
            role: "user",
            content: [
              { type: "text", text: "partial" },
              { type: "thinking", text: "thoughtful" },
            ],
          },
        },
        { type: "custom_message", customType: "t", content: "customized", display: false },
        { type: "custom", customType: "t", data: "hidden" },
        label("1", "labelled"),
        leaf("1"),
        assistant("elsewhere"),
      ]);
      for (const word of ["spoken", "toolish", "partial", "customized", "elsewhere"]) await finds(store, word, ["a"]);
      for (const word of ["thoughtful", "hidden", "labelled"]) await finds(store, word, []);
    },
  },
  {
    name: "returns the first three matching messages with the text around each match",
    async run({ store }) {
      await make(store, "a");
      const long = `${"before ".repeat(60)}needle\n\nhere${" after".repeat(60)}`;
      await store.append("a", [
        user("nothing"),
        user(long, { id: "1" }),
        user("needle", { id: "2" }),
        user("Needle!", { id: "3" }),
        user("needle", { id: "4" }),
      ]);
      const [hit] = await store.search("needle");
      assert.deepEqual(hit?.head, await store.head("a"));
      assert.deepEqual(
        hit?.matches.map(({ entryId, seq }) => [entryId, seq]),
        [
          ["1", 1],
          ["2", 2],
          ["3", 3],
        ],
      );
      await store.append("a", [user("needle and thread", { id: "5" })]);
      const late = (await store.search("thread needle"))[0]?.matches.map(({ entryId }) => entryId);
      assert.deepEqual(late, ["1", "2", "3"]);
      await store.append("a", [user(`alpha${" beta".repeat(100)} omega`)]);
      assert.match((await store.search("omega alpha"))[0]?.matches[0]?.text ?? "", /^alpha beta/);
      const [first] = hit?.matches ?? [];
      assert.match(first?.text ?? "", /^….*before needle here after.*…$/);
      assert.ok((first?.text.length ?? 0) < 200);
      assert.deepEqual((await store.search("re:^a$"))[0]?.matches, []);
    },
  },
  {
    name: "returns the latest sessions of the query first, up to the limit",
    async run({ store }) {
      for (let i = 0; i < 9; i++) {
        await make(store, `s${i}`, { userId: i % 2 === 0 ? "u" : "v", cwd: i < 5 ? "/one" : "/two" });
        await store.append(`s${i}`, [user("same words", { timestamp: `201${i}-01-01T00:00:00.000Z` })]);
      }
      await store.append("s8", [status("closed")]);
      await finds(store, "same", ["s8", "s7", "s6", "s5", "s4", "s3", "s2", "s1", "s0"]);
      await finds(store, "same", ["s8", "s7"], { limit: 2 });
      await finds(store, "words", ["s8", "s6", "s4", "s2", "s0"], { userId: "u" });
      await finds(store, "words", ["s4", "s2", "s0"], { userId: "u", cwd: "/one" });
      await finds(store, "same", ["s8"], { status: "closed" });
      await finds(store, "same", ["s6"], { status: "active", userId: "u", limit: 1 });
    },
  },
  {
    name: "finds inherited and own messages of a fork, and not later messages of its source",
    async run({ store }) {
      await make(store, "a");
      await store.append("a", [user("shared words", { id: "1", timestamp: "2010-01-01T00:00:00.000Z" })]);
      await store.fork("a", createHeader({ id: "f" }));
      await store.append("a", [user("sourceonly")]);
      await store.append("f", [user("forkonly")]);
      assert.deepEqual((await store.search("shared")).map(({ head }) => head.header.id).sort(), ["a", "f"]);
      await finds(store, "sourceonly", ["a"]);
      await finds(store, "forkonly", ["f"]);
      await finds(store, "shared forkonly", ["f"]);
      await store.delete("a");
      await finds(store, "shared", ["f"]);
      await store.purge("9999-01-01T00:00:00.000Z");
      await finds(store, "shared", ["f"]);
      await finds(store, "sourceonly", []);
    },
  },
  {
    name: "does not find a deleted session, and finds it again after undelete",
    async run({ store }) {
      await makeTwo(store);
      await store.delete("fox");
      await finds(store, "quick", []);
      await finds(store, "dog", ["dog"]);
      await store.undelete("fox");
      await finds(store, "quick", ["fox"]);
    },
  },
  {
    name: "finds deleted sessions by name, id and directory, and not by their messages",
    async run({ store }) {
      await make(store, "gone", { cwd: "/home/quick" });
      await store.append("gone", [user("the quick q fox"), name("Old name")]);
      await store.delete("gone");
      const deleted: SessionQuery = { deleted: true };
      for (const text of ["quick", "q", "re:q", "gone", '"old name" home']) {
        assert.deepEqual(
          (await store.search(text, deleted)).map(({ head, matches }) => [head.header.id, matches.length]),
          [["gone", 0]],
          text,
        );
      }
      for (const text of ["fox", "fo", "quick fox", "re:fox"]) assert.deepEqual(await store.search(text, deleted), []);
    },
  },
  {
    name: "finds a text immediately after it was appended",
    async run({ store }) {
      await make(store, "a");
      for (const word of ["alpha", "beta", "gamma"]) {
        await store.append("a", [user(word)]);
        await finds(store, word, ["a"]);
      }
      assert.equal((await headOf(store, "a")).version, 3);
    },
  },
];

async function makeTwo(store: SessionStore): Promise<void> {
  await make(store, "fox");
  await store.append("fox", [user("A Quick brown fox", { timestamp: "2010-01-01T00:00:00.000Z" })]);
  await store.append("fox", [
    assistant("The fox jumps over"),
    user("the lazy DOG", { timestamp: "2011-01-01T00:00:00.000Z" }),
  ]);
  await make(store, "dog");
  await store.append("dog", [
    user("A dog at 7 o'clock: 100% of a_b, naïve 日本語 cat", { timestamp: "2012-01-01T00:00:00.000Z" }),
  ]);
}

async function finds(
  store: SessionStore,
  text: string,
  ids: readonly string[],
  query: SessionQuery = {},
): Promise<void> {
  const hits = await store.search(text, query);
  assert.deepEqual(
    hits.map(({ head }) => head.header.id),
    ids,
    `search for ${text}`,
  );
}
