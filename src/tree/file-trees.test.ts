import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Message } from "../session/message.ts";
import { PersistentSandboxRegistry } from "../sandboxes/persistent-sandbox-registry.ts";
import { defaultSessionDirectory, defaultStoreUrl, listSessions } from "./index.ts";
import { SessionTree } from "../index.ts";

const user = (content: string): Message => ({ role: "user", content });
const assistant = (content: string): Message => ({ role: "assistant", content });

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-tree-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

const files = async () => (await readdir(directory).catch(() => [])).filter((name) => name.endsWith(".jsonl"));

async function written(cwd: string, text: string, id?: string): Promise<SessionTree> {
  const tree = await SessionTree.create(cwd, { directory, ...(id === undefined ? {} : { id }) });
  await tree.appendMessage(user(text));
  await tree.appendMessage(assistant(`re: ${text}`));
  return tree;
}

describe("a lazily created file", () => {
  test("is written with all entries when a model has answered, and not before", async () => {
    await using tree = await SessionTree.create("/project", { directory });
    await tree.setName("early");
    await tree.appendMessage(user("hello"), { id: "hello" });
    expect([tree.persisted, await files()]).toEqual([false, []]);
    await tree.appendMessage(assistant("hi"), { id: "hi" });
    expect([tree.persisted, (await files()).length]).toEqual([true, 1]);
    await tree.appendMessage(user("more"));
    await using again = await SessionTree.open(tree.path as string);
    expect(await again.entries()).toEqual(await tree.entries());
    expect((await again.entries()).map(({ type, parentId }) => [type, parentId])).toEqual([
      ["session_info", null],
      ["message", null],
      ["message", "hello"],
      ["message", "hi"],
    ]);
  });

  test("is written with the first message or immediately, as persistFrom says", async () => {
    await using early = await SessionTree.create("/project", { directory, persistFrom: "message" });
    await early.setName("x");
    expect(await files()).toHaveLength(0);
    await early.appendMessage(user("hello"));
    expect(await files()).toHaveLength(1);
    await using atOnce = await SessionTree.create("/project", { directory, persistFrom: "create" });
    expect([atOnce.persisted, (await files()).length]).toEqual([true, 2]);
  });

  test("is written by flush, and never written if the tree is closed before", async () => {
    const tree = await SessionTree.create("/project", { directory });
    await tree.appendMessage(user("hello"));
    await tree.flush();
    expect([tree.persisted, (await files()).length]).toEqual([true, 1]);
    await tree.flush();
    await tree.close();
    const dropped = await SessionTree.create("/project", { directory });
    await dropped.appendMessage(user("never mind"));
    await dropped.close();
    expect(await files()).toHaveLength(1);
  });

  test("keeps the order and parents of concurrent appends", async () => {
    await using tree = await SessionTree.create("/project", { directory });
    await tree.appendMessage(user("root"), { id: "root" });
    await tree.append({ type: "message", id: "side", message: user("side") });
    await tree.branch("root");
    await tree.append({ type: "message", id: "below-side", message: user("x") }, { onto: "side" });
    expect(tree.leafId).toBe("root");
    await Promise.all([
      tree.appendMessage(assistant("1")),
      tree.appendMessage(user("2")),
      tree.appendMessage(assistant("3")),
    ]);
    await using again = await SessionTree.open(tree.path as string);
    expect(await again.entries()).toEqual(await tree.entries());
    expect((await again.getEntry("below-side"))?.parentId).toBe("side");
    expect(await again.getBranch()).toHaveLength(4);
  });

  test("is not written by a refused append", async () => {
    await using tree = await SessionTree.create("/project", { directory });
    await tree.appendMessage(user("hello"));
    const draft = { type: "message", message: assistant("hi") } as const;
    await expect(tree.append(draft, { expectedVersion: 9 })).rejects.toMatchObject({ code: "CONFLICT" });
    expect([tree.persisted, tree.version, await files()]).toEqual([false, 1, []]);
    await tree.append(draft, { expectedVersion: 1 });
    expect([tree.persisted, tree.version]).toEqual([true, 2]);
  });

  test("makes the append fail if it cannot be written, and the append can be tried again", async () => {
    const blocked = join(directory, "not-a-directory");
    await writeFile(blocked, "");
    const failed = await SessionTree.create("/project", { directory: blocked })
      .then(async (tree) => {
        await tree.appendMessage(user("hello"));
        await expect(tree.appendMessage(assistant("hi"))).rejects.toMatchObject({ code: "STORE_FAILED" });
        expect([tree.version, tree.persisted]).toEqual([1, false]);
        return "on append";
      })
      .catch((error: { code?: string }) => error.code);
    expect(["on append", "STORE_FAILED"]).toContain(failed);
  });
});

describe("opening", () => {
  test("a missing file, or one that is not a session's, is refused with its name and not changed", async () => {
    await expect(SessionTree.open(join(directory, "none.jsonl"))).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    const foreign = join(directory, "foreign.jsonl");
    await writeFile(foreign, '{"hello":"world"}\n');
    await expect(SessionTree.open(foreign)).rejects.toMatchObject({ code: "NOT_A_SESSION" });
    expect(await readFile(foreign, "utf8")).toBe('{"hello":"world"}\n');
  });

  test("a session of a later format is refused and not changed", async () => {
    const path = join(directory, "future.jsonl");
    const text = '{"type":"session","version":99,"id":"future"}\n';
    await writeFile(path, text);
    await expect(SessionTree.open(path)).rejects.toMatchObject({ code: "UNSUPPORTED_VERSION" });
    expect(await readFile(path, "utf8")).toBe(text);
  });

  test("with readOnly, every write is refused and the file is not changed", async () => {
    const tree = await written("/project", "hello");
    await tree.close();
    const before = await stat(tree.path as string);
    await using reader = await SessionTree.open(tree.path as string, { readOnly: true });
    await expect(reader.appendMessage(user("x"))).rejects.toMatchObject({ code: "READ_ONLY" });
    await expect(reader.branch(null)).rejects.toMatchObject({ code: "READ_ONLY" });
    expect(await reader.getBranch()).toHaveLength(2);
    expect((await stat(tree.path as string)).mtimeMs).toBe(before.mtimeMs);
  });

  test("a damaged file is refused with the line number; salvage shows a lost node in place of the damage", async () => {
    const tree = await written("/project", "hello");
    await tree.appendMessage(user("damaged"), { id: "damaged" });
    await tree.appendMessage(assistant("after"), { id: "after" });
    await tree.close();
    const path = tree.path as string;
    const text = await readFile(path, "utf8");
    const broken = text.replace('"content":"damaged"', '"content"###damaged"');
    await writeFile(path, broken);
    await expect(SessionTree.open(path)).rejects.toMatchObject({ code: "DAMAGED", line: 4 });
    await using salvaged = await SessionTree.open(path, { salvage: true });
    expect((await salvaged.getBranch("after")).map(({ type }) => type)).toEqual([
      "message",
      "message",
      "lost",
      "message",
    ]);
    expect(salvaged.damage).toMatchObject([{ line: 4, entryId: "damaged" }]);
    await expect(salvaged.appendMessage(user("x"))).rejects.toMatchObject({ code: "READ_ONLY" });
    expect(await readFile(path, "utf8")).toBe(broken);
  });
});

describe("a second writer", () => {
  test("shares the file by default, and both writers see all entries", async () => {
    const one = await written("/project", "hello");
    await using two = await SessionTree.open(one.path as string);
    await one.appendMessage(user("from one"));
    await two.appendMessage(user("from two"));
    await one.appendMessage(user("one again"));
    expect(await one.getBranch()).toEqual(await two.getBranch());
    expect(await two.getBranch()).toHaveLength(5);
    await one.close();
  });

  test("is read-only or refused, as ifInUse says, until the first one closes", async () => {
    const one = await written("/project", "hello");
    const path = one.path as string;
    await expect(SessionTree.open(path, { ifInUse: "refuse" })).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await using reader = await SessionTree.open(path, { ifInUse: "read-only" });
    await expect(reader.setName("x")).rejects.toMatchObject({ code: "READ_ONLY" });
    await one.close();
    await using next = await SessionTree.open(path, { ifInUse: "refuse" });
    await next.setName("mine now");
    expect(await next.getName()).toBe("mine now");
  });
});

describe("continuing", () => {
  test("opens the project's session with the latest message, or creates one", async () => {
    const older = await written("/project", "older");
    const newer = await written("/project", "newer");
    const other = await written("/elsewhere", "latest of all");
    for (const tree of [older, newer, other]) await tree.close();
    await using recent = await SessionTree.continueRecent("/project", { directory });
    expect(recent.id).toBe(newer.id);
    await using fresh = await SessionTree.continueRecent("/nothing-here", { directory });
    expect([fresh.version, fresh.header.cwd]).toEqual([0, "/nothing-here"]);
  });
});

describe("a branched session of an opened file", () => {
  test("is a file in the same directory, also if the first was opened read-only", async () => {
    const source = await written("/project", "hello");
    await source.close();
    await using reader = await SessionTree.open(source.path as string, { readOnly: true });
    await using branch = await reader.createBranchedSession(reader.leafId as string, { id: "branch" });
    expect(branch.path?.startsWith(join(directory, "2"))).toBe(true);
    await branch.appendMessage(user("more"));
    expect(await files()).toHaveLength(2);
  });
});

describe("forking a file", () => {
  test("copies all branches with a new id and a link to the source, and does not change the source", async () => {
    const source = await written("/project", "hello");
    await source.branch(null);
    await source.appendMessage(user("another root"));
    await source.close();
    const before = await readFile(source.path as string, "utf8");
    await using fork = await SessionTree.forkFrom(source.path as string, "/target", { directory });
    expect(fork.id).not.toBe(source.id);
    expect(fork.header).toMatchObject({ cwd: "/target", lineage: { parents: [source.id], kind: "op_fork" } });
    expect(await fork.getTree()).toHaveLength(2);
    await fork.appendMessage(user("only here"));
    expect(await readFile(source.path as string, "utf8")).toBe(before);
  });
});

describe("listing", () => {
  test("lists sessions newest first, filtered by project, and damaged files beside them", async () => {
    const one = await written("/project", "first question", "one");
    await one.setName("One");
    const two = await written("/project", "second question", "two");
    const elsewhere = await written("/elsewhere", "third question", "three");
    for (const tree of [one, two, elsewhere]) await tree.close();
    await writeFile(join(directory, "junk.jsonl"), "not json\n");
    const rows = await listSessions({ directory });
    expect(rows.map(({ id }) => id)).toEqual(["three", "two", "one", expect.anything()]);
    expect(rows[2]).toMatchObject({
      name: "One",
      cwd: "/project",
      messageCount: 2,
      firstMessage: "first question",
      status: "active",
      path: one.path,
    });
    expect(rows[3]).toMatchObject({ path: join(directory, "junk.jsonl"), damage: expect.any(String) });
    expect(
      (await listSessions({ directory, cwd: "/project" })).filter(({ damage }) => damage === undefined),
    ).toHaveLength(2);
    expect(await listSessions({ directory: join(directory, "none") })).toEqual([]);
  });
});

describe("the default directory", () => {
  test("is in $SKEIN_HOME or else ~/.skein, and never in the current directory", async () => {
    vi.stubEnv("SKEIN_HOME", join(directory, "home"));
    expect(defaultSessionDirectory()).toBe(join(directory, "home", "sessions"));
    await using tree = await SessionTree.create("/project", { persistFrom: "create" });
    expect(tree.path?.startsWith(join(directory, "home", "sessions"))).toBe(true);
    vi.stubEnv("SKEIN_HOME", "");
    vi.stubEnv("HOME", join(directory, "user"));
    const cwd = process.cwd;
    try {
      process.cwd = () => directory;
      await mkdir(join(directory, ".skein"));
      expect(defaultSessionDirectory()).toBe(join(directory, "user", ".skein", "sessions"));
      expect(defaultStoreUrl()).toBe(`sqlite:${join(directory, "user", ".skein", "skein.db")}`);
      expect(new PersistentSandboxRegistry().path).toBe(join(directory, "user", ".skein", "sandboxes.json"));
    } finally {
      process.cwd = cwd;
    }
    vi.stubEnv("SKEIN_STORE", "postgres://db/skein");
    expect(defaultStoreUrl()).toBe("postgres://db/skein");
    vi.stubEnv("SKEIN_HOME", ".skein");
    expect(() => defaultSessionDirectory()).toThrow("set it to an absolute path");
  });

  test.for(["", ".", "home"])("is refused if HOME is %j, which would mean the current directory", (home) => {
    vi.stubEnv("SKEIN_HOME", "");
    vi.stubEnv("SKEIN_STORE", "");
    vi.stubEnv("HOME", home);
    for (const use of [defaultSessionDirectory, defaultStoreUrl, () => new PersistentSandboxRegistry()])
      expect(use).toThrow(/^HOME is .* set HOME or SKEIN_HOME to an absolute path/);
  });
});
