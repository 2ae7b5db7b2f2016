import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SessionError } from "../session/errors.ts";
import { createHeader } from "../session/log/header.ts";
import type { SessionStore } from "../session/store.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { HeadBatcher } from "./head-batcher.ts";

let store: SessionStore;
let asked: (readonly string[])[];
let gathered: HeadBatcher;

beforeEach(async () => {
  store = await openMemoryStore();
  for (const id of ["a", "b", "c"]) await store.create(createHeader({ id }));
  asked = [];
  gathered = new HeadBatcher({
    head: (id) => {
      asked.push([id]);
      return id === "broken" ? Promise.reject(new SessionError("DAMAGED", "It cannot be read.")) : store.head(id);
    },
    heads: (ids) => {
      asked.push(ids);
      if (ids.includes("broken")) return Promise.reject(new SessionError("DAMAGED", "One cannot be read."));
      return store.heads(ids);
    },
  });
});

afterEach(() => store.close());

test("reads all sessions of a turn of the event loop once, and returns each to its caller", async () => {
  const heads = await Promise.all(["b", "nowhere", "a", "b"].map((id) => gathered.head(id)));
  expect(heads.map((head) => head?.header.id)).toEqual(["b", undefined, "a", "b"]);
  expect(asked).toEqual([["b", "nowhere", "a", "b"]]);
});

test("reads again in the next turn, so that nobody gets a head from before the call", async () => {
  const first = gathered.head("a");
  await nextTurn();
  await store.append("a", [{ type: "session_info", name: "later" }]);
  const second = gathered.head("a");
  expect((await first)?.name).toBeNull();
  expect((await second)?.name).toBe("later");
  expect(asked).toEqual([["a"], ["a"]]);
});

test("an unreadable session fails alone", async () => {
  const settled = await Promise.allSettled(["a", "broken", "c"].map((id) => gathered.head(id)));
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});
