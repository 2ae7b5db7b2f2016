import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { importCommand } from "../../src/cli/commands/keeping/import.ts";
import { runProgram } from "../../src/cli/run-program.ts";
import { type ForeignReading, type FormatName, foreignFormat } from "../../src/interop/formats/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { goldenFiles, goldenText, importText, linesOf, readText, writtenText } from "./foreign-samples.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "kinds-"));
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

async function skein(...args: readonly string[]) {
  const output = { out: "", err: "" };
  const code = await runProgram([importCommand], [...args, "--store", `jsonl:${join(directory, "store")}`], {
    out: (text) => void (output.out += text),
    err: (text) => void (output.err += text),
    ...{ colours: false, watched: false, signal: new AbortController().signal },
  });
  return { code, ...output };
}

test.for(goldenFiles())("every kind of line in $name is known", async ({ format, text }) => {
  expect([...(await readText(format, text)).report.unknownKinds]).toEqual([]);
});

const stamp = { timestamp: "2025-11-16T07:10:00.000Z" };
/** A line of an unknown kind for each program, and the name of its kind. */
const UNHEARD_OF: readonly (readonly [FormatName, string, object, string])[] = [
  ["claude-code", "claude-code-2.1.197.jsonl", { type: "dream", uuid: "x1", parentUuid: null }, "dream"],
  ["claude-code", "claude-code-2.1.197.jsonl", { sessionId: "x" }, "(none)"],
  ["codex", "codex-0.166.0-conversation.jsonl", { ...stamp, type: "dream", payload: {} }, "dream"],
  [
    ...(["codex", "codex-0.166.0-conversation.jsonl"] as const),
    { ...stamp, type: "response_item", payload: { type: "dream", text: "x" } },
    "response_item/dream",
  ],
  [
    ...(["codex", "codex-0.166.0-conversation.jsonl"] as const),
    { ...stamp, type: "event_msg", payload: { type: "dream" } },
    "event_msg/dream",
  ],
  ["pi", "pi-0.73.1.jsonl", { ...stamp, type: "dream", id: "x1", parentId: null }, "dream"],
  [
    ...(["pi", "pi-0.73.1.jsonl"] as const),
    { ...stamp, type: "message", id: "x1", parentId: null, message: { role: "dreamer", content: "x" } },
    "message/dreamer",
  ],
  ["openrath", "openrath-1.2-partial.jsonl", { record_type: "dream" }, "dream"],
];

test.for(UNHEARD_OF)(
  "a line of an unknown kind of %s is kept and counted by its kind: %j",
  async ([name, golden, line, kind]) => {
    const [format, text] = [foreignFormat(name), JSON.stringify(line)];
    const other = JSON.stringify({
      ...line,
      ...("id" in line ? { id: "x2" } : {}),
      ...("uuid" in line ? { uuid: "x2" } : {}),
      n: 2,
    });
    const lines = [...linesOf(goldenText(golden)), text, other];
    await using store = openMemoryStore();
    const { report } = await readText(format, lines.join("\n"));
    expect([...report.unknownKinds]).toEqual([[kind, 2]]);
    expect(report.lost).toBe(0);
    const sessionId = await importText(store, format, lines.join("\n"));
    expect(linesOf(await writtenText(format, store, sessionId))).toContain(text);
  },
);

test("copies of requests and counters between the lines of an answer of Claude Code are known, and do not split it", async () => {
  const lines = linesOf(goldenText("claude-code-2.1.197.jsonl"));
  const types = ["api-request", "api-request-blob", "api-request-shape", "atis-latch", "cost-state", "tools-used"];
  const states = types.map((type) => JSON.stringify({ type, sessionId: "x", message: { role: "user", content: "x" } }));
  const mixed = lines.flatMap((line) => (line.includes('"type":"assistant"') ? [line, ...states] : [line]));
  const [plain, reading] = [lines, mixed].map((some) => readText(foreignFormat("claude-code"), some.join("\n")));
  const { entries, report } = (await reading) as ForeignReading;
  const messages = (some: ForeignReading["entries"]) =>
    some.filter(({ type }) => type === "message").map(({ id }) => id);
  expect([...report.unknownKinds]).toEqual([]);
  expect(messages(entries)).toEqual(messages(((await plain) as ForeignReading).entries));
});

test("unknown parts and roles of opencode are counted by their kinds", async () => {
  const document = JSON.parse(goldenText("opencode-1.18.33-conversation.json"));
  document.messages[0].parts.push({ type: "dream", id: "prt_x" });
  document.messages[2].info.role = "dreamer";
  const { report } = await readText(foreignFormat("opencode"), JSON.stringify(document));
  expect(Object.fromEntries(report.unknownKinds)).toEqual({ "part/dream": 1, "message/dreamer": 1 });
});

test("the report of a file with very many unknown kinds names some of them, without control characters", async () => {
  const many = Array.from({ length: 200 }, (_, index) => JSON.stringify({ type: `\u001b[2J${index}`, n: index }));
  const text = [...linesOf(goldenText("claude-code-2.1.197.jsonl")), ...many].join("\n");
  const { unknownKinds } = (await readText(foreignFormat("claude-code"), text)).report;
  expect(unknownKinds.get("??2J7")).toBe(1);
  expect([unknownKinds.size, unknownKinds.get("(others)")]).toEqual([51, 150]);
});

test("import prints the unknown kinds of lines and the count of each", async () => {
  const dream = (uuid: string) => JSON.stringify({ type: "dream", uuid, parentUuid: null });
  const lines = [...linesOf(goldenText("claude-code-2.1.197.jsonl")), dream("x1"), dream("x2")];
  await writeFile(join(directory, "one.jsonl"), lines.join("\n"));
  await writeFile(join(directory, "two.jsonl"), `${goldenText("pi-0.73.1.jsonl")}{"type":"trance","id":"x"}\n`);
  const { code, out } = await skein("import", directory);
  expect(code).toBe(0);
  expect(out).toContain("Lines of kinds that this version does not know, kept unchanged: dream (2), trance (1).");
  await writeFile(join(directory, "one.jsonl"), [...lines, dream("x3")].join("\n"));
  const again = JSON.parse((await skein("import", "--from", "claude-code", directory, "--json")).out);
  expect(again.kinds).toMatchObject({ dream: 3 });
});
