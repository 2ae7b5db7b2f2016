import { copyFile, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { message, user as said } from "../../../test/sample-log.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import { requestIdOf } from "../../session/log/open-runs.ts";
import type { SessionStore } from "../../session/store.ts";
import { LogFile } from "./log-file.ts";
import { openJsonlStore } from "./index.ts";

const asked: EntryDraft = { type: "run_request", id: requestIdOf("r"), runId: "r", input: "Hi." };
const cancel: EntryDraft = { type: "cancel", runId: "r" };

async function openDirectory(): Promise<{ readonly directory: string; readonly open: () => Promise<SessionStore> }> {
  const directory = await mkdtemp(join(tmpdir(), "skein-marks-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const open = async (): Promise<SessionStore> => {
    const store = await openJsonlStore({ directory });
    onTestFinished(() => store.close());
    return store;
  };
  return { directory, open };
}

async function requestedIn(store: SessionStore): Promise<string[]> {
  return (await store.list({ runs: "requested" })).items.map(({ header }) => header.id).toSorted();
}

test("a listing of runs checks only the files of sessions that have some, also those that other stores have requested", async () => {
  const { open } = await openDirectory();
  const [one, other] = [await open(), await open()];
  for (let index = 0; index < 40; index++) await one.create(createHeader({ id: `s${index}` }));
  await one.append("s1", [asked]);
  expect([await requestedIn(one), await requestedIn(other)]).toEqual([["s1"], ["s1"]]);
  await one.append("s2", [message("m", said("Hi.")), asked]);
  await one.create(createHeader({ id: "new" }), { entries: [asked] });
  const refreshed = vi.spyOn(LogFile.prototype, "refresh");
  const checked = vi.spyOn(LogFile.prototype, "isFresh");
  onTestFinished(() => void vi.restoreAllMocks());
  expect(await requestedIn(other)).toEqual(["new", "s1", "s2"]);
  expect([refreshed.mock.calls.length, checked.mock.calls.length]).toEqual([3, 0]);
  await one.append("s1", [cancel]);
  expect([await requestedIn(one), await requestedIn(other)]).toEqual([
    ["new", "s2"],
    ["new", "s2"],
  ]);
});

test("a mark is removed with the last open run and with its session, and made again when the session is undeleted", async () => {
  const { directory, open } = await openDirectory();
  const store = await open();
  const marks = (): Promise<string[]> => readdir(join(directory, ".state", "open-runs"));
  await store.create(createHeader({ id: "a" }), { entries: [asked] });
  await store.append("a", [{ ...asked, id: requestIdOf("q"), runId: "q" }, cancel]);
  expect(await marks()).toHaveLength(1);
  await store.delete("a");
  expect([await marks(), await requestedIn(store)]).toEqual([[], []]);
  await store.undelete("a");
  expect([await requestedIn(store), await requestedIn(await open())]).toEqual([["a"], ["a"]]);
  await store.append("a", [{ ...cancel, runId: "q" }]);
  expect([await marks(), await requestedIn(store)]).toEqual([[], []]);
});

test("a file that was put into the directory by hand is found by a listing of runs, at the latest ten seconds later", async () => {
  const [from, to] = [await openDirectory(), await openDirectory()];
  const source = await from.open();
  await source.create(createHeader({ id: "a" }), { entries: [asked] });
  const store = await to.open();
  expect(await requestedIn(store)).toEqual([]);
  const [name = ""] = (await readdir(from.directory)).filter((each) => each.endsWith(".jsonl"));
  await copyFile(join(from.directory, name), join(to.directory, name));
  const nowMs = performance.now();
  vi.spyOn(performance, "now").mockImplementation(() => nowMs + 10_001);
  onTestFinished(() => void vi.restoreAllMocks());
  expect(await requestedIn(store)).toEqual(["a"]);
});
