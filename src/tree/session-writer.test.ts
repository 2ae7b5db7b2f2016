import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { registerSandboxBackend } from "../session/sandbox/sandbox-backends.ts";
import { Session } from "../session/value/session.ts";
import { assistantRow, type Row, Transcript, userRow } from "../session/value/transcript.ts";
import { loadSession, openSessionWriter } from "./index.ts";
import { SessionTree } from "../index.ts";
import { findRun } from "./run-file.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-writer-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

const names = async () => (await readdir(directory)).filter((name) => !name.startsWith("."));
const lines = async (path: string) =>
  (await readFile(path, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
const rows: readonly Row[] = [userRow("one"), assistantRow([], "two"), userRow("three")];

test("writes the header when it is opened, each row immediately, and the final name with the trailer", async () => {
  const session = Session.create({ text: "one" });
  await using writer = await openSessionWriter(session, { directory });
  expect(await names()).toEqual([basename(writer.partialPath)]);
  expect(writer.partialPath).toBe(`${writer.path}.__partial__`);
  expect(await lines(writer.partialPath)).toMatchObject([
    { type: "session", id: session.id, lineage: session.lineage },
  ]);
  for (const [index, row] of rows.entries()) {
    await writer.writeRow(row);
    expect(writer.rowsWritten).toBe(index + 1);
    expect((await lines(writer.partialPath)).at(-1)).toMatchObject({ id: row.id, message: row.message });
  }
  await writer.close();
  await writer.close();
  expect(await names()).toEqual([basename(writer.path)]);
  expect((await lines(writer.path)).map(({ type }) => type)).toEqual([
    "session",
    "message",
    "message",
    "message",
    "trailer",
  ]);
  expect((await lines(writer.path)).at(-1)).toMatchObject({ entryCount: 3, usage: { totalTokens: 0 } });
  await expect(writer.writeRow(userRow("late"))).rejects.toMatchObject({ code: "RUN_ENDED" });
});

test("names the file after the time and the session in the default directory, or uses the given path", async () => {
  vi.stubEnv("SKEIN_HOME", directory);
  const session = Session.create({ text: "x" });
  await using byDefault = await openSessionWriter(session);
  expect(byDefault.path).toMatch(new RegExp(`sessions/\\d{4}-[^/]*_${session.id}\\.jsonl$`));
  await using byPath = await openSessionWriter(Session.create({ text: "x" }), { path: join(directory, "my.log") });
  expect(byPath.path).toBe(join(directory, "my.log"));
  await byPath.writeRow(userRow("hello"));
  await byPath.close();
  expect((await loadSession(byPath.path)).transcript.toMessages()).toEqual([{ role: "user", content: "hello" }]);
});

test("leaves a partial file without a trailer when it is disposed, and another writer continues it", async () => {
  const session = Session.create({ text: "x" });
  const first = await openSessionWriter(session, { directory });
  {
    await using writer = first;
    await writer.writeRow(rows[0] as Row);
    await writer.writeRow(rows[1] as Row);
  }
  expect(await names()).toEqual([basename(first.partialPath)]);
  await using second = await openSessionWriter(session, { directory });
  expect([second.path, second.rowsWritten]).toEqual([first.path, 2]);
  // Existing rows are not written again, and the next one is appended after the last.
  for (const row of rows.slice(0, 2).reverse()) await second.writeRow(row);
  expect(second.rowsWritten).toBe(2);
  await second.writeRow(rows[2] as Row);
  await second.close();
  const loaded = await loadSession(second.path);
  expect(loaded.transcript.rows).toEqual(rows);
  expect(loaded.header).toMatchObject({ id: session.id });
});

test("makes a finished file partial again with the first new row, and not before", async () => {
  const session = Session.create({ text: "x" });
  const path = join(directory, "run.jsonl");
  await using first = await openSessionWriter(session, { path });
  await first.writeRow(rows[0] as Row);
  await first.close();
  const before = await readFile(path);
  await using unused = await openSessionWriter(session, { path });
  await unused.close();
  expect(await readFile(path)).toEqual(before);
  const second = await openSessionWriter(session, { path });
  await second.writeRow(rows[1] as Row);
  expect(await names()).toEqual(["run.jsonl.__partial__"]);
  expect((await loadSession(path)).closed).toBe(false);
  await second.close();
  expect((await readFile(path)).subarray(0, before.length)).toEqual(before);
  expect(await loadSession(path)).toMatchObject({ closed: true, trailer: { entryCount: 3 } });
});

test("truncates the torn row of a crash, and continues after the last complete one", async () => {
  const session = Session.create({ text: "x" });
  await using first = await openSessionWriter(session, { directory });
  await first.writeRow(rows[0] as Row);
  await first.abandon();
  await appendFile(first.partialPath, '{"type":"message","id":"torn","mess');
  await using second = await openSessionWriter(session, { directory });
  await second.writeRow(rows[1] as Row);
  await second.close();
  expect((await loadSession(session.id, { directory })).transcript.rows).toEqual(rows.slice(0, 2));
});

test("refuses a path with another session or another kind of file, or with both a finished and a partial file", async () => {
  const path = join(directory, "run.jsonl");
  const session = Session.create({ text: "x" });
  await using first = await openSessionWriter(session, { path });
  await first.writeRow(rows[0] as Row);
  await first.close();
  const before = await readFile(path);
  const other = Session.create({ text: "y" });
  await expect(openSessionWriter(other, { path })).rejects.toMatchObject({ code: "SESSION_EXISTS" });
  await writeFile(join(directory, "notes.jsonl"), "not a session\n");
  await expect(openSessionWriter(other, { path: join(directory, "notes.jsonl") })).rejects.toMatchObject({
    code: "NOT_A_SESSION",
  });
  await writeFile(`${path}.__partial__`, before);
  await expect(openSessionWriter(session, { path })).rejects.toMatchObject({ code: "SESSION_EXISTS" });
  expect(await readFile(path)).toEqual(before);
  expect((await names()).sort()).toEqual(["notes.jsonl", "run.jsonl", "run.jsonl.__partial__"]);
});

test("rejects if the directory cannot be written to, and creates nothing", async () => {
  await writeFile(join(directory, "file"), "");
  const path = join(directory, "file", "run.jsonl");
  const opening = openSessionWriter(Session.fromUserMessage("hi"), { path });
  await expect(opening).rejects.toMatchObject({
    name: "SessionError",
    code: "STORE_FAILED",
    message: `Nothing can be written beside "${path}.__partial__" (ENOTDIR); check the directory, or choose another path.`,
  });
  expect(await readdir(directory)).toEqual(["file"]);
});

test("never replaces a file that was created under its final name meanwhile", async () => {
  const path = join(directory, "run.jsonl");
  await using writer = await openSessionWriter(Session.create({ text: "x" }), { path });
  await writer.writeRow(rows[0] as Row);
  await writeFile(path, "someone else's\n");
  await expect(writer.close()).rejects.toMatchObject({ code: "SESSION_EXISTS" });
  expect(await readFile(path, "utf8")).toBe("someone else's\n");
  await rm(path);
  await writer.close();
  expect(await loadSession(path)).toMatchObject({ closed: true });
});

test("excludes other writers and trees until it is closed or abandoned", async () => {
  const session = Session.create({ text: "x" });
  const writer = await openSessionWriter(session, { directory });
  await expect(openSessionWriter(session, { directory })).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await expect(SessionTree.open(writer.partialPath, { ifInUse: "refuse" })).rejects.toMatchObject({
    code: "SESSION_BUSY",
  });
  await writer.writeRow(rows[0] as Row);
  await writer.abandon();
  await expect(writer.close()).rejects.toMatchObject({ code: "RUN_ENDED" });
  await using next = await openSessionWriter(session, { directory });
  expect(next.rowsWritten).toBe(1);
});

test("appends below its own last row if another process moves the leaf", async () => {
  await using writer = await openSessionWriter(Session.create({ text: "x" }), { directory });
  await writer.writeRow(rows[0] as Row);
  await writer.writeRow(rows[1] as Row);
  await using tree = await SessionTree.open(writer.partialPath);
  await tree.branch((rows[0] as Row).id);
  await writer.writeRow(rows[2] as Row);
  expect((await tree.getEntry((rows[2] as Row).id))?.parentId).toBe((rows[1] as Row).id);
  expect((await tree.getLeaf())?.id).toBe((rows[0] as Row).id);
});

test("records the sandbox placement with the given handle", async () => {
  registerSandboxBackend("writer-test", () => {
    throw new Error("never opened");
  });
  const session = Session.of(Transcript.empty, {}).to("writer-test", "/work");
  await using writer = await openSessionWriter(session, { directory, sandboxHandleId: "handle-7" });
  const { header } = await loadSession(writer.path);
  expect(header.sandbox).toEqual({ backend: "writer-test", spec: { workingDir: "/work" }, handleId: "handle-7" });
});

test("exactly one of several concurrent writers opens a file, also if others only check for writers", async () => {
  const session = Session.create({ text: "one" });
  const path = join(directory, "run.jsonl");
  for (let round = 0; round < 5; round++) {
    const looking = Array.from({ length: 5 }, () => findRun(path));
    const opening = Array.from({ length: 5 }, () => openSessionWriter(session, { path }));
    const [opened, ...more] = (await Promise.allSettled(opening)).flatMap((one) =>
      one.status === "fulfilled" ? [one.value] : [],
    );
    await Promise.all(looking);
    expect([opened === undefined, more]).toEqual([false, []]);
    await expect(openSessionWriter(session, { path })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    expect(await findRun(path)).toBe("another writer of this process");
    await opened?.abandon();
    expect(await findRun(path)).toBeNull();
  }
});
