import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { exportCommand } from "../../src/cli/commands/keeping/export.ts";
import { handoff } from "../../src/cli/commands/keeping/handoff.ts";
import { importCommand } from "../../src/cli/commands/keeping/import.ts";
import { runProgram } from "../../src/cli/run-program.ts";
import { goldenText, linesOf } from "./foreign-samples.ts";

let directory: string;
let store: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "formats-"));
  store = `jsonl:${join(directory, "store")}`;
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
  vi.stubEnv("PI_CODING_AGENT_DIR", join(directory, "pi"));
  vi.stubEnv("CLAUDE_CONFIG_DIR", join(directory, "claude"));
  await mkdir(join(directory, "pi", "sessions", "--srv-shop--"), { recursive: true });
  await writeFile(join(directory, "pi", "sessions", "--srv-shop--", "one.jsonl"), goldenText("pi-0.73.1.jsonl"));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

async function skein(...args: readonly string[]) {
  const output = { out: "", err: "" };
  const code = await runProgram([exportCommand, importCommand, handoff], [...args, "--store", store], {
    out: (text) => void (output.out += text),
    err: (text) => void (output.err += text),
    ...{ colours: false, watched: false, signal: new AbortController().signal },
  });
  return { code, ...output };
}

test("import --from imports all sessions of a program, and a second time only new ones", async () => {
  expect(await skein("import", "--from", "pi", "--dry-run")).toMatchObject({
    code: 0,
    out: expect.stringContaining("9 entries would be added"),
  });
  expect(JSON.parse((await skein("import", "--from", "pi", "--json")).out)).toMatchObject({
    ...{ files: 1, entries: 9, sessions: { new: 1, same: 0 } },
    lines: { mapped: 10, kept: 0, lost: 0 },
  });
  expect(JSON.parse((await skein("import", "--from", "pi", "--json")).out)).toMatchObject({
    ...{ entries: 0, sessions: { new: 0, same: 1 }, lines: { mapped: 0 } },
  });
});

test("import detects the format of a file, and names the lines that it could not read", async () => {
  const file = join(directory, "talk.jsonl");
  const lines = linesOf(goldenText("claude-code-2.1.197.jsonl"));
  await writeFile(file, [...lines.slice(0, 5), "{broken", ...lines.slice(5)].join("\n"));
  const { code, out, err } = await skein("import", file);
  expect([code, out]).toEqual([1, expect.stringContaining("1 new")]);
  expect(err).toContain(`${file}, line 6, could not be read: it is cut off or not JSON.`);
});

test("export --to writes a session in another program's format, and reports what the format cannot hold", async () => {
  await skein("import", "--from", "pi");
  const output = join(directory, "talk.jsonl");
  const { code, out } = await skein("export", "last", "--to", "claude-code", "--output", output, "--json");
  expect([code, JSON.parse(out).report]).toEqual([
    0,
    { written: 7, verbatim: 0, secrets: 0, omitted: { model_change: 1, thinking_level_change: 1 }, notes: [] },
  ]);
  expect(JSON.parse((await skein("import", output, "--json")).out)).toMatchObject({
    sessions: { new: 1 },
    lines: { lost: 0 },
  });
});

test("export to opencode says that a session names no model, which opencode requires", async () => {
  const at = "2026-01-01T00:00:00.000Z";
  const message = { role: "user", content: [{ type: "text", text: "Hello?" }], timestamp: 0 };
  const lines = [
    { type: "session", version: 3, id: "lonely", timestamp: at, cwd: "/srv/shop" },
    { type: "message", id: "m1", parentId: null, timestamp: at, message },
  ];
  const file = join(directory, "lonely.jsonl");
  await writeFile(file, lines.map((line) => JSON.stringify(line)).join("\n"));
  await skein("import", file);
  const { code, out } = await skein("export", "last", "--to", "opencode", "--output", join(directory, "lonely.json"));
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(/names no model, .* opencode run needs --model PROVIDER\/MODEL\.\n$/),
  ]);
});

test("handoff writes a session where the program looks for it, never overwrites another, and prints the command", async () => {
  await skein("import", "--from", "pi");
  const first = JSON.parse((await skein("handoff", "last", "--to", "pi", "--json")).out);
  expect(linesOf(await readFile(first.path, "utf8")).map((line) => JSON.parse(line))).toEqual(
    linesOf(goldenText("pi-0.73.1.jsonl")).map((line) => JSON.parse(line)),
  );
  const second = JSON.parse((await skein("handoff", "last", "--to", "pi", "--json")).out);
  expect(second.path).not.toBe(first.path);
  expect((await readdir(join(directory, "pi", "sessions", "--srv-shop--"))).length).toBe(3);
  const { out } = await skein("handoff", "last", "--to", "claude-code", "--cwd", "/srv/a shop");
  expect(out).toMatch(/cd '\/srv\/a shop'\s+claude --resume [0-9a-f-]{36}/);
  vi.stubEnv("OPENRATH_HOME", join(directory, "openrath"));
  const library = await skein("handoff", "last", "--to", "openrath");
  expect(linesOf(library.out).at(-1)).toBe(
    "openrath has no command that continues it: open the file from your own program.",
  );
});

test("secrets of an imported file are reported when it is exported", async () => {
  const file = join(directory, "talk.jsonl");
  const secret = "q7x-4411-zz9";
  await writeFile(file, goldenText("pi-0.73.1.jsonl").replace("Thank you", `API_KEY=${secret}`));
  await skein("import", file);
  const output = join(directory, "out.jsonl");
  const { out } = await skein("export", "last", "--to", "pi", "--output", output);
  expect(out).toContain("It holds 1 text that looks like a secret; --sanitize removes them.");
  await skein("export", "last", "--to", "pi", "--output", output, "--force", "--sanitize");
  expect(await readFile(output, "utf8")).not.toContain(secret);
});

test("--sanitize removes secrets and home directories from the header of an imported file", async () => {
  const [file, output] = [join(directory, "talk.json"), join(directory, "out.json")];
  const secret = `ghp_${"a1".repeat(18)}`;
  const document = JSON.parse(goldenText("opencode-1.18.33-conversation.json"));
  Object.assign(document.info, {
    directory: "/home/ann/shop",
    share: { url: "x", secret: "q7x-4411-zz9" },
    note: secret,
  });
  const header = { type: "session", version: 3, id: "a", timestamp: 0, cwd: "/home/ann/shop", token: "q7x-4411-zz9" };
  for (const text of [JSON.stringify(document), `${JSON.stringify({ ...header, note: secret })}\n`]) {
    await writeFile(file, text);
    await skein("import", file);
    for (const to of ["opencode", "pi", "claude-code", "codex", "openrath"]) {
      await skein("export", "last", "--to", to, "--output", output, "--force", "--sanitize");
      expect(await readFile(output, "utf8")).not.toMatch(/ghp_|q7x-4411|home\/ann/);
    }
  }
  const handed = JSON.parse((await skein("handoff", "last", "--to", "pi", "--sanitize", "--json")).out);
  const [first = "{}"] = linesOf(await readFile(handed.path, "utf8"));
  expect([handed.cwd, JSON.parse(first).cwd]).toEqual(["/home/ann/shop", "/home/ann/shop"]);
});
