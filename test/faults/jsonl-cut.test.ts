import { copyFile, mkdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { idsOf, makeDirectory, makeSession, openStore, user } from "./jsonl-support.ts";
import { entriesOf } from "./store-support.ts";

const appends: readonly (readonly EntryDraft[])[] = [
  [user("one", "1")],
  [
    user("two \u2028 \u0085 \u{1f9f6} lines\nand tabs\t", "2"),
    user("three", "3"),
    { type: "label", id: "4", targetId: "2", label: "two" },
  ],
  [{ type: "leaf", id: "5", targetId: "2" }],
  [user("six", "6"), user("seven", "7")],
  [{ type: "session_info", id: "8", name: "ünïcode" }],
  [user("nine", "9"), { type: "leaf", id: "10", targetId: null }, user("eleven", "11")],
];

/** A written file, and which appends were acknowledged at which size. */
async function written(directory: string) {
  const { store, path } = await makeSession(directory);
  const steps = [{ size: (await stat(path)).size, ids: [] as string[] }];
  for (const drafts of appends) {
    await store.append("a", drafts);
    steps.push({ size: (await stat(path)).size, ids: await idsOf(store) });
  }
  const entries = await entriesOf(store);
  await store.close();
  return { bytes: await readFile(path), name: basename(path), steps, entries };
}

test("recovers whole appends, and can be continued, after a cut at any byte", async () => {
  const { bytes, name, steps, entries } = await written(await makeDirectory());
  const directory = await makeDirectory();
  const path = join(directory, name);
  const headerEnd = (steps[0] as { size: number }).size;
  const check = async (length: number): Promise<void> => {
    await writeFile(path, bytes.subarray(0, length));
    await using store = await openJsonlStore({ directory });
    if (length < headerEnd) {
      await expect(store.head("a")).rejects.toMatchObject({
        code: expect.stringMatching(/^(?:DAMAGED|NOT_A_SESSION)$/),
      });
      expect((await stat(path)).size).toBe(length);
      return;
    }
    const survivors = steps.findLast(({ size }) => size <= length)?.ids as string[];
    expect(await idsOf(store)).toEqual(survivors);
    expect(await idsOf(store, "a", { reverse: true })).toEqual([...survivors].reverse());
    // Reading has not removed the rest of the interrupted write.
    expect((await stat(path)).size).toBe(length);
    await store.append("a", [user("next", "next")]);
    expect(await idsOf(store)).toEqual([...survivors, "next"]);
    const lines = (await readFile(path, "utf8")).split("\n");
    expect(lines.pop()).toBe("");
    for (const line of lines) JSON.parse(line);
    // A writer whose append was not acknowledged retries it.
    for (const drafts of appends) await store.append("a", drafts);
    expect((await idsOf(store)).toSorted()).toEqual([...entries.map(({ id }) => id), "next"].toSorted());
    await checkHeadIsFold(store, "a");
  };
  // Every byte of the last two appends, and some everywhere.
  const from = (steps.at(-3) as { size: number }).size;
  for (let length = from; length <= bytes.length; length++) await check(length);
  await fc.assert(fc.asyncProperty(fc.nat(bytes.length), check), { numRuns: 150, seed: 7 });
});

test("is read the same when the index covers more than the file has", async () => {
  const directory = await makeDirectory();
  const { store, path } = await makeSession(directory);
  const text = "x".repeat(6000);
  for (let i = 0; i < 220; i++) await store.append("a", [user(text, `e${i}`), user("short", `e${i}b`)]);
  await store.close();
  const index = join(directory, ".index", `${basename(path)}.idx`);
  expect((await stat(index)).size).toBeGreaterThan(0);
  const bytes = await readFile(path);
  const ends = [...bytes.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
  const work = await makeDirectory();
  await mkdir(join(work, ".index"));
  const cuts = fc.nat(bytes.length - (ends[0] as number)).map((length) => length + (ends[0] as number));
  const check = async (length: number): Promise<void> => {
    await writeFile(join(work, basename(path)), bytes);
    await copyFile(index, join(work, ".index", basename(index)));
    await truncate(join(work, basename(path)), length);
    await using cut = await openStore(work);
    const lines = ends.filter((end) => end <= length).length - 1;
    expect((await cut.head("a"))?.version).toBe(lines * 2);
    expect(await cut.getEntry("a", `e${lines}`)).toBeNull();
    await cut.append("a", [user("next", "next")]);
    expect((await entriesOf(cut)).map(({ id }) => id).slice(-2)).toEqual(
      lines === 0 ? ["next"] : [`e${lines - 1}b`, "next"],
    );
    await checkHeadIsFold(cut, "a");
  };
  await fc.assert(fc.asyncProperty(cuts, check), { numRuns: 40, seed: 7 });
});
