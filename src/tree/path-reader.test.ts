import { expect, test } from "vitest";
import { createHeader } from "../session/log/header.ts";
import type { EntryDraft } from "../session/log/entry.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { cachedLookup } from "./path-reader.ts";

const said = (id: string): EntryDraft => ({ type: "message", id, message: { role: "user", content: id } });

test("cachedLookup returns entries of any branch by their ids, and null for an unknown id", async () => {
  const store = openMemoryStore();
  await store.create(createHeader({ id: "s" }));
  await store.append("s", [said("root"), said("left")]);
  await store.append("s", [said("right")], { onto: "root" });
  const read = cachedLookup(store, "s");
  for (const id of ["right", "left", "root"]) expect(await read(id)).toMatchObject({ id });
  expect(await read("nowhere")).toBeNull();
  expect(await cachedLookup(store, "no-such-session")("root")).toBeNull();
});

test("cachedLookup reads near entries once and in pages, and not the entries between distant ones", async () => {
  const store = openMemoryStore();
  await store.create(createHeader({ id: "s" }));
  await store.append(
    "s",
    Array.from({ length: 5000 }, (_, index) => said(`e${index}`)),
  );
  const seen: number[] = [];
  const counted = new Proxy(store, {
    get(target, name) {
      if (name === "getEntry") return target.getEntry.bind(target);
      if (name !== "read") return Reflect.get(target, name);
      return async function* (...given: Parameters<typeof target.read>) {
        for await (const entry of target.read(...given)) {
          seen.push(entry.seq);
          yield entry;
        }
      };
    },
  });
  const read = cachedLookup(counted, "s");
  for (let index = 4999; index > 4000; index -= 9) expect(await read(`e${index}`)).toMatchObject({ id: `e${index}` });
  expect(seen).toEqual(Array.from(seen, (_, index) => 4998 - index));
  expect(Math.min(...seen)).toBeGreaterThan(2900);
  const before = seen.length;
  for (const id of ["e1000", "e999", "e100"]) expect(await read(id)).toMatchObject({ id });
  expect(seen.length - before).toBeLessThan(40);
});
