import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { exportCommand } from "../../src/cli/commands/keeping/export.ts";
import { importCommand } from "../../src/cli/commands/keeping/import.ts";
import { runProgram } from "../../src/cli/run-program.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { builtProgram } from "../cli/run-skein.ts";
import { message, user } from "../sample-log.ts";
import { fillSession } from "./sample-session.ts";

let directory: string;
let store: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "export-"));
  store = `sqlite:${join(directory, "skein.db")}`;
  await using opened = await openSqliteStore({ path: join(directory, "skein.db") });
  await fillSession(opened);
  await opened.append("talk", [message("s", user("\u009b2J\u202e API_KEY=abc-123"))]);
});

afterEach(() => rm(directory, { recursive: true, force: true }));

async function skein(...args: readonly string[]) {
  return interruptible(new AbortController().signal, ...args);
}

async function interruptible(signal: AbortSignal, ...args: readonly string[]) {
  const said = { out: "", err: "" };
  const code = await runProgram([exportCommand, importCommand], args, {
    out: (text) => void (said.out += text),
    err: (text) => void (said.err += text),
    colours: false,
    watched: false,
    signal,
  });
  return { code, ...said };
}

const inDirectory = (name: string) => join(directory, name);
/** Without the files of the store, two of which SQLite creates while it is open and removes with the last connection. */
const otherFiles = async () => (await readdir(directory)).filter((name) => !name.startsWith("skein.db"));
const leftovers = async () => (await readdir(directory)).filter((name) => name.endsWith(".tmp"));

test("export writes Markdown to the standard output by default", async () => {
  const { code, out, err } = await skein("export", "talk", "--store", store);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/^---\nid: "talk"\n/);
});

test.for([
  ["talk.md", /^---\n/],
  ["talk.markdown", /^---\n/],
  ["talk.HTML", /^<!doctype html>\n/],
  ["talk.htm", /^<!doctype html>\n/],
  ["talk.jsonl", /^\{"type":"session",/],
  ["talk.txt", /^---\n/],
] as const)("export writes %s in the format of its name", async ([name, beginning]) => {
  const { code, out } = await skein("export", "talk", "--store", store, "--output", inDirectory(name), "--json");
  const text = await readFile(inDirectory(name), "utf8");
  expect(text).toMatch(beginning);
  expect([code, JSON.parse(out)]).toEqual([
    0,
    expect.objectContaining({ session: "talk", bytes: Buffer.byteLength(text) }),
  ]);
  expect(await leftovers()).toEqual([]);
});

test("export accepts a format, a leaf and --sanitize", async () => {
  const html = await skein("export", "talk", "--store", store, "--format", "html", "--leaf", "u2");
  expect(html.out).toContain("A picture");
  expect(html.out).not.toContain("Another answer");
  expect((await skein("export", "talk", "--store", store)).out).toContain("abc-123");
  const sanitized = await skein("export", "talk", "--store", store, "--sanitize");
  expect(sanitized.out).toContain("API_KEY=[secret 1]");
});

test("export writes no control sequences to a terminal, and its JSONL stays equivalent", async () => {
  const { out } = await skein("export", "talk", "--store", store, "--format", "jsonl");
  expect(out).not.toMatch(/[\u007f-\u009f\u202a-\u202e]/);
  expect(out).toContain("\\u009b2J\\u202e");
  await writeFile(inDirectory("talk.jsonl"), out);
  const imported = await skein("import", inDirectory("talk.jsonl"), "--store", store, "--id", "copy", "--json");
  expect([imported.code, JSON.parse(imported.out)]).toEqual([0, { session: "copy", version: 12 }]);
  await using opened = await openSqliteStore({ path: inDirectory("skein.db") });
  expect(await opened.getEntry("copy", "s")).toEqual(await opened.getEntry("talk", "s"));
});

test("export replaces a file only with the option for it", async () => {
  await writeFile(inDirectory("talk.md"), "mine");
  const refused = await skein("export", "talk", "--store", store, "--output", inDirectory("talk.md"));
  expect([refused.code, refused.out]).toEqual([2, ""]);
  expect(refused.err).toMatch(/already exists; give --force to replace it\.\n$/);
  expect(await readFile(inDirectory("talk.md"), "utf8")).toBe("mine");
  expect((await skein("export", "talk", "--store", store, "--output", inDirectory("talk.md"), "--force")).code).toBe(0);
  expect(await readFile(inDirectory("talk.md"), "utf8")).toMatch(/^---\n/);
  expect(await leftovers()).toEqual([]);
});

test.for<readonly [string, number, (out: string) => readonly string[]]>([
  ["a session that is not there", 1, (out) => ["nobody", "--output", out]],
  ["an entry that is not there", 1, (out) => ["talk", "--leaf", "nowhere", "--output", out]],
  ["a fact for a leaf", 1, (out) => ["talk", "--leaf", "b1", "--output", out]],
  ["a directory that is not there", 2, (out) => ["talk", "--output", join(out, "x", "talk.md")]],
  ["another format", 2, (out) => ["talk", "--format", "pdf", "--output", out]],
  ["no name for the file", 2, () => ["talk", "--output", ""]],
  ["JSON without a file", 2, () => ["talk", "--json"]],
])("export refuses %s in one sentence, and leaves no file", async ([, code, args]) => {
  const before = await otherFiles();
  const ended = await skein("export", ...args(inDirectory("out.md")), "--store", store);
  expect([ended.code, ended.out]).toEqual([code, ""]);
  expect(ended.err).toMatch(/^[^\n]+\.\n$/);
  expect(await otherFiles()).toEqual(before);
});

test("export leaves nothing behind when it is interrupted", async () => {
  const signal = AbortSignal.abort(new Error("The command was interrupted."));
  const ended = await interruptible(signal, "export", "talk", "--store", store, "--output", inDirectory("talk.md"));
  expect([ended.code, ended.err]).toEqual([1, "The command was interrupted.\n"]);
  expect((await readdir(directory)).filter((name) => name.includes("talk"))).toEqual([]);
});

const AS_WORDS = "Approvals and runs of the file have no force; import your own files with --trust to keep them.\n";

test("import creates the session of a file, for another user when asked to", async () => {
  const file = inDirectory("talk.jsonl");
  await skein("export", "talk", "--store", store, "--output", file);
  const other = inDirectory("other.db");
  const ended = await skein("import", file, "--store", `sqlite:${other}`, "--user", "bob");
  expect(ended.code).toBe(0);
  expect(ended.out).toBe(`Session talk has been imported with 12 entries.\n${AS_WORDS}`);
  await using opened = await openSqliteStore({ path: other });
  expect((await opened.head("talk"))?.header.userId).toBe("bob");
});

test("import reads the standard input", async () => {
  const { out } = await skein("export", "talk", "--store", store, "--format", "jsonl");
  const printed = await new Promise<string>((resolve, reject) => {
    const args = [builtProgram(), "import", "-", "--store", store, "--id", "copy"];
    const child = execFile(process.execPath, args, (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    );
    child.stdin?.end(out);
  });
  expect(printed).toBe(`Session copy has been imported with 12 entries.\n${AS_WORDS}`);
});

test.for<readonly [string, number, string | null]>([
  ["a file that is not there", 2, null],
  ["a file of another kind", 1, "# Readme\n"],
  ["a session that is there already", 1, '{"type":"session","version":1,"id":"talk"'],
])("import refuses %s in one sentence", async ([, code, text]) => {
  const file = inDirectory("in.jsonl");
  if (text !== null) await writeFile(file, text);
  if (text?.startsWith("{") === true) await skein("export", "talk", "--store", store, "--output", file, "--force");
  const ended = await skein("import", file, "--store", store, "--trust-store");
  expect([ended.code, ended.out]).toEqual([code, ""]);
  expect(ended.err).toMatch(/^[^\n]+\.\n$/);
});
