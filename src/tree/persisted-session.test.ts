import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createHeader } from "../session/log/header.ts";
import { Session } from "../session/value/session.ts";
import { assistantRow, type RowInit, userRow } from "../session/value/transcript.ts";
import { openJsonlStore } from "../stores/jsonl/index.ts";
import { deleteSession, listPersistedSessions, loadSession, openSessionWriter, pruneSessions } from "./index.ts";
import { SessionTree } from "../index.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-persisted-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

const answer: RowInit = {
  message: {
    role: "assistant",
    content: "two",
    usage: { inputTokens: 5, outputTokens: 2, totalTokens: 7 },
    cost: 0.25,
  },
};

async function write(session: Session, how: { close: boolean }, rows: readonly RowInit[] = [userRow("one"), answer]) {
  await using writer = await openSessionWriter(session, { directory });
  for (const row of rows) await writer.writeRow(row);
  if (how.close) await writer.close();
  return how.close ? writer.path : writer.partialPath;
}

/** Writes a session to a file with an old time of creation. */
async function writeOld(id: string, day: string): Promise<void> {
  await using store = await openJsonlStore({ directory });
  await store.create(createHeader({ id, createdAt: `${day}T00:00:00.000Z` }));
}

describe("loading", () => {
  test("loads what was written, by id, by path, and by the final name of a partial file", async () => {
    const session = Session.create({ text: "one" });
    const path = await write(session, { close: false });
    const loaded = await loadSession(session.id, { directory });
    expect(loaded).toMatchObject({
      header: { id: session.id, lineage: session.lineage },
      usage: { totalTokens: 7 },
      cost: 0.25,
      closed: false,
      trailer: null,
      systemPrompt: null,
      path,
    });
    expect(loaded.transcript.toMessages()).toEqual([{ role: "user", content: "one" }, answer.message]);
    expect(await loadSession(path)).toEqual(loaded);
    expect(await loadSession(path.replace(".__partial__", ""))).toEqual(loaded);
    expect(await loadSession(relative(".", path))).toEqual(loaded);
  });

  test("returns the trailer of a closed file, and none after a further append", async () => {
    const session = Session.create({ text: "one" });
    const path = await write(session, { close: true });
    expect(await loadSession(path)).toMatchObject({
      closed: true,
      trailer: { type: "trailer", entryCount: 2, usage: { totalTokens: 7 } },
    });
    await using tree = await SessionTree.open(path);
    await tree.setName("a fact changes nothing");
    expect(await loadSession(path)).toMatchObject({ closed: true, trailer: { entryCount: 2 } });
    await tree.appendMessage({ role: "user", content: "more" });
    expect(await loadSession(path)).toMatchObject({ closed: false, trailer: null });
  });

  test("reads from the default directory, and writes nothing", async () => {
    vi.stubEnv("SKEIN_HOME", directory);
    const session = Session.create({ text: "one" });
    await using writer = await openSessionWriter(session);
    await writer.abandon();
    const before = await readFile(writer.partialPath);
    expect((await loadSession(session.id)).transcript.length).toBe(0);
    expect(await readFile(writer.partialPath)).toEqual(before);
  });

  test.each(["../escape", "..", "", "a b", ".hidden", "x".repeat(200)])(
    "takes %j for no id of a session",
    async (id) => {
      const code = id.includes("/") ? "SESSION_NOT_FOUND" : "INVALID_ID";
      await expect(loadSession(id, { directory })).rejects.toMatchObject({ code });
      await expect(deleteSession(id, { directory })).rejects.toMatchObject({ code: "INVALID_ID" });
    },
  );

  test("has different errors for missing and damaged files", async () => {
    await expect(loadSession("nobody", { directory })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(loadSession("nobody.jsonl")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    const path = await write(Session.create({ text: "one" }), { close: true });
    await appendFile(path, "broken\n{}\n");
    await expect(loadSession(path)).rejects.toMatchObject({ code: "DAMAGED", path });
  });
});

describe("listing", () => {
  test("lists sessions oldest first, with kind, operator, row count and closed, and damaged files last", async () => {
    const session = Session.create({ text: "one" });
    const partial = await write(session, { close: false });
    const fork = session.fork();
    const closed = await write(fork, { close: true }, [userRow("one"), answer, userRow("three")]);
    await writeOld("ancient", "2001-01-01");
    await writeFile(join(directory, "2001-01-02T00-00-00-000Z_broken.jsonl"), '{"type":"session"}\n');
    const rows = await listPersistedSessions({ directory });
    expect(rows.map(({ id }) => id)).toEqual(["ancient", session.id, fork.id, "broken"]);
    expect(rows[1]).toMatchObject({
      path: partial,
      kind: "leaf_user",
      operator: "createUserSession",
      rowCount: 2,
      closed: false,
    });
    expect(rows[2]).toMatchObject({ path: closed, kind: "op_fork", operator: "fork", rowCount: 3, closed: true });
    expect(rows[3]).toMatchObject({ damage: expect.stringContaining("line 1") });
    expect(rows.slice(0, 3).every((row) => row.damage === undefined)).toBe(true);
  });

  test("lists nothing for a missing directory, and does not create it", async () => {
    const nowhere = join(directory, "nowhere");
    expect(await listPersistedSessions({ directory: nowhere })).toEqual([]);
    expect(await deleteSession("a", { directory: nowhere })).toBe(false);
    expect(await pruneSessions({ directory: nowhere, olderThan: new Date() })).toEqual([]);
    expect(await readdir(directory)).toEqual([]);
  });
});

describe("deleting", () => {
  test("deletes a finished or partial session, returns whether it existed, and keeps the others", async () => {
    const [one, two, three] = [1, 2, 3].map(() => Session.create({ text: "one" })) as [Session, Session, Session];
    await write(one, { close: true });
    await write(two, { close: false });
    await write(three, { close: true });
    expect(await deleteSession(one.id, { directory })).toBe(true);
    expect(await deleteSession(two.id, { directory })).toBe(true);
    expect(await deleteSession(two.id, { directory })).toBe(false);
    expect((await listPersistedSessions({ directory })).map(({ id }) => id)).toEqual([three.id]);
    await expect(loadSession(one.id, { directory })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  });

  test("pruneSessions deletes by time of creation, and keeps sessions that are written, run or damaged", async () => {
    for (const [id, day] of [
      ["later", "2002-01-01"],
      ["first", "2000-01-01"],
      ["second", "2001-01-01"],
    ] as const) {
      await writeOld(id, day);
    }
    for (const id of ["written", "leased"]) await writeOld(id, "2000-06-01");
    const broken = join(directory, "2000-01-01T00-00-00-000Z_broken.jsonl");
    await writeFile(broken, '{"type":"session"}\n');
    await using store = await openJsonlStore({ directory });
    await using lease = await store.lease("leased", "run-1", 60_000);
    const { header, path } = await loadSession("written", { directory });
    await using writer = await openSessionWriter(Session.of((await loadSession(path)).transcript, { id: header.id }), {
      directory,
    });
    const olderThan = new Date("2001-06-01");
    expect(await pruneSessions({ directory, olderThan })).toEqual(["first", "second"]);
    await writer.abandon();
    await lease.release();
    await using tree = await SessionTree.open(path);
    await tree.setName("written by a tree");
    expect(await pruneSessions({ directory, olderThan })).toEqual(["leased"]);
    await tree.close();
    expect(await pruneSessions({ directory, olderThan })).toEqual(["written"]);
    expect((await listPersistedSessions({ directory })).map(({ id }) => id)).toEqual(["later", "broken"]);
    expect(await readFile(broken, "utf8")).toBe('{"type":"session"}\n');
  });

  test("pruneSessions purges sessions that were deleted before that time, and no others", async () => {
    await writeOld("long-gone", "2000-01-01");
    await deleteSession("long-gone", { directory });
    await pruneSessions({ directory, olderThan: new Date("2000-01-01") });
    expect(await readdir(join(directory, ".trash"))).toHaveLength(1);
    await pruneSessions({ directory, olderThan: new Date(Date.now() + 1000) });
    expect(await readdir(join(directory, ".trash"))).toEqual([]);
  });

  test.each([undefined, "2001-01-01", new Date(Number.NaN)])(
    "pruneSessions refuses %j as a time",
    async (olderThan) => {
      await expect(pruneSessions({ directory, olderThan: olderThan as Date })).rejects.toMatchObject({
        code: "INVALID_OPTION",
      });
    },
  );
});

test("a row of a transcript has the same id in the file", async () => {
  const session = Session.of(Session.create({ text: "one" }).transcript.append(assistantRow([], "two")));
  await write(session, { close: true }, session.transcript.rows);
  expect((await loadSession(session.id, { directory })).transcript.rows).toEqual(session.transcript.rows);
});
