import { cp, mkdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createClient } from "../../src/http/client/index.ts";
import { findIsolation } from "../../src/sandboxes/local/isolation.ts";
import { openSqlite } from "../../src/stores/sqlite/open-sqlite.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { Editor } from "./acp-editor.ts";
import { forgeStore, type HostileRepository, makeRepository, serve, skein } from "./hostile-repository.ts";

const NOTHING = { inside: false, outside: false };
const NOT_LISTED =
  /is not listed as your own store: runs, approvals and sandboxes .* have no force\. Add --trust-store/;
const NOT_USED = /\.skein\/skein\.db is no longer used by default; open it with --store sqlite:\.\/\.skein\/skein\.db/;
const isIsolating = (await findIsolation({ isolation: "auto" })) !== null;
/** The effects in a trusted store: its command runs, and is isolated although the header turns isolation off. */
const RAN = { inside: true, outside: !isIsolating };

/** Waits until a server has started a run that was due at its start. */
async function untilServed({ url, token }: Awaited<ReturnType<typeof serve>>): Promise<void> {
  const client = createClient({ url, token });
  const { id } = (await client.sessions.create({})).header;
  const { runId } = await client.runs.start(id, { input: "hello" });
  for await (const _event of client.runs.events(id, runId));
}

/** Every way to execute something of a store, by the command line. */
const ATTEMPTS: Readonly<
  Record<string, (repository: HostileRepository, named: readonly string[]) => Promise<{ readonly stderr: string }>>
> = {
  async serve({ directory: cwd, home }, named) {
    const server = await serve(named, { cwd, home });
    await untilServed(server);
    await server.stop();
    return { stderr: server.stderr() };
  },
  async "recover --all"({ directory: cwd, home }, named) {
    const ended = await skein(["recover", "--all", "--no-config", "--ask", "never", ...named], { cwd, home });
    return ended;
  },
  async "chat --continue, /recover and /retry"({ directory: cwd, home }, named) {
    const input = "/recover\n/retry\nhello\n";
    return skein(["chat", "--continue", "--no-config", "--ask", "never", ...named], { cwd, home, input });
  },
  async "the first prompt of an editor"({ directory, home }, named) {
    const editor = await Editor.start(directory, {
      args: [...named, "--ask", "never"],
      env: { HOME: home, SKEIN_HOME: "" },
    });
    const loaded = await editor
      .ask("session/load", { sessionId: "forged", cwd: directory, mcpServers: [] })
      .catch(() => null);
    if (loaded !== null) await editor.say("forged", "hello");
    await editor.leave();
    return { stderr: editor.complaints };
  },
};

describe("a store that a cloned repository brings along", () => {
  test.for(Object.keys(ATTEMPTS))("is not opened by %s without being named", async (name) => {
    const repository = await makeRepository();
    const { stderr } = await (ATTEMPTS[name] as (typeof ATTEMPTS)[string])(repository, []);
    expect([repository.ran(), stderr]).toEqual([NOTHING, expect.stringMatching(NOT_USED)]);
  });

  test.for(Object.keys(ATTEMPTS))("has no force in %s when it is named", async (name) => {
    const repository = await makeRepository();
    const { stderr } = await (ATTEMPTS[name] as (typeof ATTEMPTS)[string])(repository, [
      "--store",
      "sqlite:./.skein/skein.db",
    ]);
    expect([repository.ran(), stderr]).toEqual([NOTHING, expect.stringMatching(NOT_LISTED)]);
  });

  test.for(Object.keys(ATTEMPTS))(
    "continues in %s with --trust-store, isolated although its header turns that off",
    async (name) => {
      const repository = await makeRepository("answered", undefined, name === "serve" ? "assistant" : "skein");
      const { stderr } = await (ATTEMPTS[name] as (typeof ATTEMPTS)[string])(repository, [
        "--store",
        "sqlite:./.skein/skein.db",
        "--trust-store",
      ]);
      expect(stderr).not.toMatch(NOT_LISTED);
      if (name === "serve") await expect.poll(() => repository.ran()).toEqual(RAN);
      else expect(repository.ran()).toEqual(RAN);
    },
  );

  test("shows no runs and questions, and nothing in it can be approved or cancelled", async () => {
    const repository = await makeRepository("parked");
    const { directory: cwd, home } = repository;
    const named = ["--store", "sqlite:.skein/skein.db"];
    expect(JSON.parse((await skein(["runs", "--json", ...named], { cwd, home })).stdout)).toMatchObject({ runs: [] });
    const { stdout } = await skein(["approvals", "--json", ...named], { cwd, home });
    expect(JSON.parse(stdout)).toMatchObject({ questions: [] });
    for (const args of [
      ["approve", "forged"],
      ["approve", "forged", "q1"],
      ["deny", "forged"],
      ["cancel", "forged"],
    ]) {
      const { code, stderr } = await skein([...args, ...named], { cwd, home });
      expect([args, code, stderr]).toEqual([args, 1, expect.stringMatching(NOT_LISTED)]);
    }
    // Nothing was written: with trust, the same question is still open and can be answered.
    const approved = await skein(["approve", "forged", "--trust-store", ...named], { cwd, home });
    expect(approved.code).toBe(0);
    const listed = ["recover", "--all", "--no-config", ...named];
    expect((await skein(listed, { cwd, home })).stderr).not.toMatch(NOT_LISTED);
    expect(repository.ran()).toEqual(RAN);
  });

  test("can be read, listed, searched and exported without being listed", async () => {
    const { directory: cwd, home } = await makeRepository();
    const named = ["--store", "sqlite:.skein/skein.db"];
    for (const args of [["list"], ["show", "forged"], ["tree", "forged"], ["search", "Do it"], ["stats"], ["doctor"]]) {
      const { code, stderr } = await skein([...args, ...named], { cwd, home });
      expect([args, code, stderr]).toEqual([args, 0, ""]);
    }
    const { stdout } = await skein(["export", "forged", "--format", "jsonl", ...named], { cwd, home });
    expect(stdout).toContain('"decision":{"approved":true}');
    await expect(stat(join(home, ".skein"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("is copied without trust, so that its runs have no force in one's own store either", async () => {
    const repository = await makeRepository();
    const { directory: cwd, home } = repository;
    const own = `sqlite:${join(home, "own.db")}`;
    const copied = await skein(["copy", "--from", "sqlite:.skein/skein.db", "--to", own], { cwd, home });
    expect([copied.code, copied.stderr]).toEqual([0, expect.stringMatching(NOT_LISTED)]);
    expect(copied.stderr).toContain("otherwise they have no force in the copy either.");
    const again = await skein(["copy", "--from", "sqlite:.skein/skein.db", "--to", own], { cwd, home });
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining("0 entries were written")]);
    const went = await skein(["recover", "--all", "--no-config", "--ask", "never", "--store", own], { cwd, home });
    expect([went.stdout, went.stderr, repository.ran()]).toEqual([
      "There is no run to recover.\n",
      expect.not.stringMatching(NOT_LISTED),
      NOTHING,
    ]);
  });

  test("can be written to: entries of this process count, but in the next process they are untrusted", async () => {
    const { directory: cwd, home, ran } = await makeRepository();
    const named = ["--no-config", "--ask", "never", "--store", "sqlite:.skein/skein.db"];
    const talk = await skein(["chat", "forged", ...named], { cwd, home, input: "run touch said\n" });
    expect([talk.code, await stat(join(cwd, "said")).then(() => true)]).toEqual([0, true]);
    const next = await skein(["recover", "--all", ...named], { cwd, home });
    expect([next.stdout, ran()]).toEqual(["There is no run to recover.\n", NOTHING]);
  });
});

describe("the trust in a store", () => {
  const RECOVER = ["recover", "--all", "--no-config", "--ask", "never"];

  /** The output and the executed commands of a command line for a forged store at some path. */
  async function recovering(repository: HostileRepository, args: readonly string[], env: Record<string, string> = {}) {
    const { stderr } = await skein([...RECOVER, ...args], { cwd: repository.directory, home: repository.home, env });
    return { told: NOT_LISTED.test(stderr), ran: repository.ran(), stderr };
  }
  const UNTRUSTED = { told: true, ran: NOTHING };
  const OWN = { told: false, ran: RAN };

  test.for([
    ["a relative path", "sqlite:.skein/skein.db"],
    ["a path with a trailing slash", "sqlite:./.skein/skein.db/"],
    ["a path with dots in it", "sqlite:./.skein/../.skein/./skein.db"],
    ["a symlinked directory", "sqlite:link/skein.db"],
    ["a symlinked file", "sqlite:linked.db"],
  ] as const)("does not depend on the form of its path: %s", async ([, url]) => {
    const repository = await makeRepository();
    await symlink(".skein", join(repository.directory, "link"));
    await symlink(".skein/skein.db", join(repository.directory, "linked.db"));
    expect(await recovering(repository, ["--store", url])).toMatchObject(UNTRUSTED);
    // Trusted under one path, it is trusted under every other.
    await skein(["runs", "--store", "sqlite:.skein/skein.db", "--trust-store"], {
      cwd: repository.directory,
      home: repository.home,
    });
    expect(await recovering(repository, ["--store", url])).toMatchObject(OWN);
  });

  test.for(["file:.skein/skein.db", "./.skein/skein.db", "sqlite://.skein/skein.db"])(
    "%s is not the URL of a store, and nothing is opened",
    async (url) => {
      const repository = await makeRepository();
      expect(await recovering(repository, ["--store", url])).toMatchObject({ told: false, ran: NOTHING });
    },
  );

  test("a directory of session files is untrusted until it is listed", async () => {
    const repository = await makeRepository("answered", (directory) => `jsonl:${join(directory, "sessions")}`);
    expect(await recovering(repository, ["--store", "jsonl:./sessions/"])).toMatchObject(UNTRUSTED);
    expect(await recovering(repository, ["--store", "jsonl:sessions", "--trust-store"])).toMatchObject(OWN);
  });

  test("a store in Skein's home is trusted, but not the target of a link there", async () => {
    const repository = await makeRepository();
    const skeinHome = join(repository.home, ".skein");
    await mkdir(skeinHome);
    await symlink(repository.storePath, join(skeinHome, "x.db"));
    expect(await recovering(repository, ["--store", `sqlite:${join(skeinHome, "x.db")}`])).toMatchObject(UNTRUSTED);
    await rm(join(skeinHome, "x.db"));
    await cp(repository.storePath, join(skeinHome, "x.db"));
    expect(await recovering(repository, ["--store", `sqlite:${join(skeinHome, "x.db")}`])).toMatchObject(OWN);
  });

  test("a default store that is a link to another file is untrusted", async () => {
    const repository = await makeRepository();
    await mkdir(join(repository.home, ".skein"));
    await symlink(repository.storePath, join(repository.home, ".skein/skein.db"));
    expect(await recovering(repository, [])).toMatchObject(UNTRUSTED);
  });

  test("another store at a listed path needs trust again, and so does a listed store that was moved", async () => {
    const repository = await makeRepository();
    const { directory: cwd, home, storePath } = repository;
    const own = ["--store", "sqlite:own.db"];
    // A store that the program creates is listed.
    await skein(["chat", "--no-config", ...own], { cwd, home, input: "hello\n" });
    expect((await skein(["runs", ...own], { cwd, home })).stderr).toBe("");
    await rename(join(cwd, "own.db"), join(cwd, "moved.db"));
    expect((await skein(["runs", "--store", "sqlite:moved.db"], { cwd, home })).stderr).toMatch(NOT_LISTED);
    await cp(storePath, join(cwd, "own.db"));
    expect(await recovering(repository, own)).toMatchObject(UNTRUSTED);
  });

  test("trusts an absolute SKEIN_STORE, which is also the default; a relative path there is no better than --store", async () => {
    const repository = await makeRepository();
    expect(await recovering(repository, [], { SKEIN_STORE: "sqlite:./.skein/skein.db" })).toMatchObject(UNTRUSTED);
    expect(await recovering(repository, [], { SKEIN_STORE: `sqlite:${repository.storePath}` })).toMatchObject(OWN);
  });

  test("a .env of the repository is not read, and a home in the current directory is refused", async () => {
    const repository = await makeRepository();
    const variables = "SKEIN_HOME=.skein\nSKEIN_STORE=sqlite:.skein/skein.db\n";
    await writeFile(join(repository.directory, ".env"), variables);
    expect(await recovering(repository, [])).toMatchObject({ ran: NOTHING, stderr: expect.stringMatching(NOT_USED) });
    for (const home of [{ SKEIN_HOME: ".skein" }, { HOME: "" }, { HOME: "." }]) {
      const { ran, stderr } = await recovering(repository, [], home);
      expect([ran, stderr]).toEqual([NOTHING, expect.stringContaining("to an absolute path")]);
    }
  });

  test("a database with a trigger is only opened if it is trusted, because the trigger could change writes", async () => {
    const repository = await makeRepository();
    const database = await openSqlite(repository.storePath);
    database.exec("CREATE TRIGGER spy AFTER INSERT ON entries BEGIN UPDATE entries SET body = body; END");
    database.close();
    const named = ["--store", "sqlite:.skein/skein.db"];
    const { ran, stderr } = await recovering(repository, named);
    expect([ran, stderr]).toEqual([NOTHING, expect.stringContaining('has the trigger "spy"')]);
    expect(await recovering(repository, [...named, "--trust-store"])).toMatchObject(OWN);
  });

  test("a database with a generated column is only opened if it is trusted, as it can return other data than were written", async () => {
    const repository = await makeRepository();
    const database = await openSqlite(repository.storePath);
    database.exec(
      "ALTER TABLE entries ADD COLUMN said TEXT GENERATED ALWAYS AS (replace(body, 'false', 'true')) VIRTUAL",
    );
    database.close();
    const { ran, stderr } = await recovering(repository, ["--store", "sqlite:.skein/skein.db"]);
    expect([ran, stderr]).toEqual([NOTHING, expect.stringContaining('has the generated column "said"')]);
  });

  test("the list is private, several processes can add to it in parallel, and one that others can write counts as empty", async () => {
    const repository = await makeRepository();
    const { directory: cwd, home } = repository;
    const names = ["a", "b", "c", "d"];
    await Promise.all(
      names.map((name) =>
        forgeStore(`sqlite:${join(cwd, name)}`, cwd, join(home, name), { state: "parked", agent: "skein" }),
      ),
    );
    const trusting = (name: string) => skein(["runs", "--store", `sqlite:${name}`, "--trust-store"], { cwd, home });
    await Promise.all(names.map(trusting));
    const directory = join(home, ".skein/trusted");
    const list = JSON.parse(await readFile(join(directory, "stores.json"), "utf8")) as { stores: { path: string }[] };
    expect(list.stores.map(({ path }) => path).sort()).toEqual(names.map((name) => join(cwd, name)));
    const modes = [directory, join(directory, "stores.json")].map(async (path) => (await stat(path)).mode & 0o777);
    expect(await Promise.all(modes)).toEqual([0o700, 0o600]);
    const { chmod } = await import("node:fs/promises");
    await chmod(join(directory, "stores.json"), 0o666);
    expect((await skein(["runs", "--store", "sqlite:a"], { cwd, home })).stderr).toMatch(NOT_LISTED);
  });

  test("an untrusted store gets an id only from its user: reading it writes nothing", async () => {
    const { directory: cwd, home, storePath } = await makeRepository();
    await skein(["runs", "--store", "sqlite:.skein/skein.db"], { cwd, home });
    await using store = await openStore(`sqlite:${storePath}`);
    expect(await store.eraser.readMarks()).toEqual(new Map());
  });
});
