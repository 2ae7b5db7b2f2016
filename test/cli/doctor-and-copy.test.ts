import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import { digestOf } from "../../src/stores/doctor/log-digest.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { fill, tamper, tamperFile } from "../doctor/damage.ts";
import { contentsOf, fillStore, makeDirectory, say } from "../moving/sample-store.ts";
import { runHere } from "./run-skein.ts";

const skein = (...args: readonly string[]) => runHere(args);

test("doctor prints its findings or that there are none, and sets the exit code", async () => {
  const path = join(await makeDirectory(), "skein.db");
  const store = await openSqliteStore({ path });
  await fill(store);
  await store.close();
  const whole = await skein("doctor", "--store", `sqlite:${path}`);
  expect([whole.code, whole.stdout]).toEqual([0, "3 sessions with 128 entries: no problem found.\n"]);

  tamper(path, "UPDATE sessions SET user_id = 'eve' WHERE id = 'a'");
  const found = await skein("doctor", "--store", `sqlite:${path}`);
  expect(found.code).toBe(1);
  expect(found.stdout).toMatch(/^listing: a: It is missing in the listing by userId "ann"\.$/m);
  expect(found.stdout).toMatch(/: 1 finding\.\n$/);
  const json = await skein("doctor", "--store", `sqlite:${path}`, "--json");
  expect(json.code).toBe(1);
  expect(JSON.parse(json.stdout)).toMatchObject({
    sessions: 3,
    findings: [{ sessionId: "a", kind: "listing" }],
    repaired: [],
  });
  expect((await skein("doctor", "--store", `sqlite:${path}`, "--session", "beta")).code).toBe(0);
});

test("doctor repairs damaged files on request, and saves the removed bytes", async () => {
  const directory = await makeDirectory();
  const store = await openJsonlStore({ directory });
  await store.create(createHeader({ id: "a" }));
  for (let i = 0; i < 5; i++) await store.append("a", [say(`m${i}`)]);
  await store.close();
  await tamperFile(directory, "a", (text) => text.replace(/\{[^\n]*"m2"[^\n]*\n/, '{"bad\u001b[2J\n'));
  const url = `jsonl:${directory}`;
  const found = await skein("doctor", "--store", url);
  expect(found.code).toBe(1);
  expect(found.stdout).toMatch(/^unreadable: a: /);
  const repaired = await skein("doctor", "--store", url, "--repair");
  expect([repaired.code, repaired.stdout.split("\n").length]).toEqual([0, 3]);
  const kept = (await readdir(directory)).find((name) => name.includes(".damaged-")) as string;
  expect(await readFile(join(directory, kept), "utf8")).toContain('{"bad');
  await using again = await openJsonlStore({ directory });
  expect((await again.head("a"))?.version).toBe(5);
  expect((await skein("doctor", "--store", `sqlite:${directory}/x.db`, "--repair")).code).toBe(2);
});

test("copy copies to another kind of store, and continues when it is run again", async () => {
  const directory = await makeDirectory();
  await using from = await openSqliteStore({ path: join(directory, "from.db") });
  await fillStore(from);
  const urls = ["--from", `sqlite:${directory}/from.db`, "--to", `jsonl:${directory}/to`];
  const one = await skein("copy", ...urls, "--session", "main", "--session", "nobody");
  expect([one.code, one.stdout]).toEqual([
    1,
    'not copied: nobody: There is no session "nobody".\n1 session is the same in both stores; 9 entries were written.\n',
  ]);
  const all = await skein("copy", ...urls, "--json");
  expect([all.code, JSON.parse(all.stdout)]).toMatchObject([0, { sessions: 7, failures: [] }]);
  await using to = await openJsonlStore({ directory: join(directory, "to") });
  expect(await contentsOf(to)).toEqual(await contentsOf(from));
  expect((await skein("copy", ...urls, "--deleted")).code).toBe(0);
  expect(await to.undelete("gone")).toBe(true);
  expect((await digestOf(to, "gone"))?.version).toBe(1);
});

test("a missing store is rejected, and not created by reading", async () => {
  const directory = await makeDirectory();
  for (const url of [`sqlite:${directory}/nothing.db`, `jsonl:${directory}/nothing`]) {
    const { code, stdout, stderr } = await skein("doctor", "--store", url);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^There is no store at .*; check the path\.\n$/);
  }
  expect(await readdir(directory)).toEqual([]);
});

test("doctor replaces control characters in its output", async () => {
  const path = join(await makeDirectory(), "skein.db");
  const store = await openSqliteStore({ path });
  await store.create(createHeader({ id: "a", userId: "eve\u202e\u0085\u009b2J" }));
  await store.close();
  tamper(path, "UPDATE sessions SET user_id = 'ann'");
  for (const args of [[], ["--json"]]) {
    const { code, stdout } = await skein("doctor", "--store", `sqlite:${path}`, ...args);
    expect(code).toBe(1);
    expect(stdout).toContain("eve");
    expect(stdout).not.toMatch(/[^\P{Cc}\n]|\p{Bidi_Control}/u);
  }
});
