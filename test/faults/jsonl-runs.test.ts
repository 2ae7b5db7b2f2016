import { mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { RunsCondition } from "../../src/session/log/open-runs.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { pathsOf } from "../../src/stores/jsonl/file-names.ts";
import { makeDirectory, openStore, user } from "./jsonl-support.ts";

/** Long enough that a few entries have an index. */
const LONG = "x".repeat(30_000);

const PARKED: readonly EntryDraft[] = [
  { type: "run", runId: "r", phase: "started" },
  { type: "approval", id: "q", runId: "r", callId: "c" },
  { type: "run_parked", runId: "r", questions: [{ callId: "c", question: "q" }] },
];

async function found(store: SessionStore, runs: RunsCondition): Promise<string[]> {
  return (await store.list({ runs })).items.map(({ header }) => header.id);
}

test("a file that keeps the name of one in the making is found by the run that is parked in it", async () => {
  const directory = await makeDirectory();
  const store = await openStore(directory);
  await store.createFile(join(directory, "talk.jsonl.__partial__"), createHeader({ id: "a" }), [user("hi")]);
  await store.append("a", PARKED);
  await store.close();
  const later = await openStore(directory);
  expect(basename((await later.pathOf("a")) as string)).toBe("talk.jsonl.__partial__");
  expect([await found(later, "asking"), await found(later, "requested")]).toEqual([["a"], []]);
  const answer = { type: "approval", id: "answer:q", runId: "r", callId: "c", question: "q" } as const;
  await later.append("a", [{ ...answer, decision: { approved: true } }]);
  expect([await found(later, "asking"), await found(later, "requested")]).toEqual([[], ["a"]]);
});

test("an index lists open runs like the log", async () => {
  const directory = await makeDirectory();
  const store = await openStore(directory);
  await store.create(createHeader({ id: "a" }));
  await store.append("a", PARKED);
  for (let index = 0; index < 40; index++) await store.append("a", [user(LONG)]);
  await store.close();
  const later = await openStore(directory, { readOnly: true });
  expect(await found(later, "asking")).toEqual(["a"]);
  expect((await later.head("a"))?.openRuns).toEqual([{ runId: "r", state: "parked", questions: ["q"] }]);
});

test("looks for the holder of a session only if a run has started in it", async () => {
  const directory = await makeDirectory();
  const store = await openStore(directory);
  await store.create(createHeader({ id: "parked" }), { entries: PARKED });
  await store.create(createHeader({ id: "started" }), { entries: PARKED.slice(0, 1) });
  const { lease } = pathsOf((await store.pathOf("parked")) as string);
  await mkdir(dirname(lease), { recursive: true });
  await writeFile(lease, "no lease at all");
  expect([await found(store, "interrupted"), await found(store, "running")]).toEqual([["started"], []]);
  await store.lease("started", "r", 60_000);
  expect([await found(store, "interrupted"), await found(store, "running")]).toEqual([[], ["started"]]);
});
