import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  FOREIGN_FORMATS,
  type FormatName,
  foreignFormat,
  importFiles,
  importForeign,
  readForeign,
  writeForeign,
} from "../../src/interop/formats/index.ts";
import type { Message } from "../../src/session/message.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { entriesOf, type GoldenFile, goldenFiles, goldenText, importText, linesOf, toldIn } from "./foreign-samples.ts";

const files = goldenFiles();

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "formats-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Unexpected values, as JSON. */
const HOSTILE: readonly string[] = [
  "null",
  "1e300",
  "-1e300",
  "-1",
  "0.5",
  "9007199254740993",
  '""',
  '" "',
  "[]",
  "{}",
  "true",
  "[null]",
  '["x"]',
  "[[]]",
  '{"toString":1,"valueOf":1}',
  '{"__proto__":{"polluted":1}}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  '"__proto__"',
  '"constructor"',
  '"toString"',
  '"+275760-09-13T00:00:00.000Z"',
  '"-000001-01-01T00:00:00.000Z"',
  '"2025-02-31T00:00:00.000Z"',
  '"\\ud800"',
  '"\\u0000"',
  '"../../x"',
  '"--option"',
  `"${"a".repeat(20_000)}"`,
  `${"[".repeat(300)}${"]".repeat(300)}`,
  `${"[".repeat(20_000)}${"]".repeat(20_000)}`,
  `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`,
];

/** The positions in a JSON value, each as the path of keys to it. */
function placesIn(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, item]) => placesIn(item, [...path, key]))];
}

/** A JSON text with other texts at some positions. */
function withHostile(value: unknown, at: ReadonlyMap<string, string>, path: readonly string[] = []): string {
  const hostile = at.get(path.join("/"));
  if (hostile !== undefined) return hostile;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const inside = Object.entries(value).map(([key, item]) => [key, withHostile(item, at, [...path, key])] as const);
  if (Array.isArray(value)) return `[${inside.map(([, text]) => text).join(",")}]`;
  return `{${inside.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(",")}}`;
}

/** A golden file with up to four of its values replaced, half of the time in its first line, where the header is. */
function mutated({ format, text }: GoldenFile): fc.Arbitrary<string> {
  const units = (format.unit === "document" ? [text] : linesOf(text)).map((unit) => JSON.parse(unit) as unknown);
  const places = units.map((unit) => placesIn(unit));
  const change = fc
    .tuple(fc.oneof(fc.constant(0), fc.nat(units.length - 1)), fc.nat(), fc.constantFrom(...HOSTILE))
    .map(([unit, pick, hostile]) => {
      const found = places[unit] as (readonly string[])[];
      return { unit, path: (found[pick % found.length] as readonly string[]).join("/"), hostile };
    });
  return fc.array(change, { minLength: 1, maxLength: 4 }).map((changes) =>
    units
      .map((unit, index) => {
        const own = changes.filter((each) => each.unit === index);
        return withHostile(unit, new Map(own.map(({ path, hostile }) => [path, hostile])));
      })
      .join("\n"),
  );
}

async function importAll(store: SessionStore, path: string, name?: FormatName) {
  const steps = [];
  const format = name === undefined ? null : foreignFormat(name);
  for await (const step of importFiles({ store, userId: "ana" }, { format, path })) steps.push(step);
  return steps;
}

/** A golden file under another id, so that it is a separate session. */
function goodText({ text }: GoldenFile): string {
  const id = /ses_\w{26}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(text)?.[0] ?? "";
  return text.replaceAll(id, id.replace(/.{12}$/, "000000000000"));
}

describe.for(FOREIGN_FORMATS.map(({ name }) => name))("a file of %s", (name) => {
  const golden = files.filter(({ format }) => format.name === name);

  test("with any of its values replaced is read, or is one loss, and can be written again", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(...golden.map(mutated)),
        fc.constantFrom(...FOREIGN_FORMATS.map((format) => format.name)),
        async (text, other) => {
          const reading = await readForeign(foreignFormat(name), [Buffer.from(text)]);
          const reasons = (reading?.report.lostLines ?? []).map(({ reason }) => reason);
          expect(reasons.filter((reason) => reason.startsWith("the reader failed"))).toEqual([]);
          const ending = name === "opencode" ? "json" : "jsonl";
          const [hostile, good] = ["1", "2"].map((file) => join(directory, `rollout-${file}.${ending}`)) as [
            string,
            string,
          ];
          await writeFile(hostile, text);
          await writeFile(good, goodText(golden[0] as GoldenFile));
          await using store = openMemoryStore();
          const steps = await importAll(store, directory, name);
          expect(steps.find(({ path }) => path === good)?.sessions[0]?.outcome).toBe("new");
          for (const { sessionId } of steps.find(({ path }) => path === hostile)?.sessions ?? []) {
            expect((await entriesOf(store, sessionId)).length).toBe((await store.head(sessionId))?.version);
            for (const format of [foreignFormat(name), foreignFormat(other)]) {
              const { pieces } = await writeForeign(format, store, sessionId, { cwd: "/srv" });
              for await (const piece of pieces) expect(typeof piece).toBe("string");
            }
          }
          expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
        },
      ),
      { numRuns: 40 },
    );
  });
});

const HEADERS: readonly (readonly [string, string])[] = [
  ["a date beyond all dates in a file of pi", '{"type":"session","version":3,"id":"a","timestamp":1e300,"cwd":"/"}'],
  [
    "a date that no calendar has in a file of pi",
    '{"type":"session","version":3,"id":"a","timestamp":"+300000-01-01"}',
  ],
  [
    "an early header of Codex at the end of time",
    '{"id":"a","timestamp":"+275760-09-13T00:00:00.000Z","instructions":null}\n{"type":"message","role":"user","content":[]}\n{"type":"message","role":"user","content":[]}',
  ],
  [
    "a date beyond all dates in an export of opencode",
    '{"info":{"id":"ses_a","time":{"created":1e300}},"messages":[]}',
  ],
  ["extras of OpenRath that are null", openrath({ lineage_extras: [null] })],
  ["extras of OpenRath that are texts", openrath({ lineage_extras: ["ab", ["a"], ["a", 1, 2], ["a", 1]] })],
  ["a kind of OpenRath that cannot be made a text", openrath({ lineage_kind: { toString: 1, valueOf: 1 } })],
];

function openrath(fields: object): string {
  return JSON.stringify({ record_type: "header", schema_version: 1, id: "a", lineage_kind: "op_fork", ...fields });
}

test.for(HEADERS)("%s does not prevent the import of its session", async ([, text]) => {
  await writeFile(join(directory, "a.jsonl"), `${text}\n`);
  await using store = openMemoryStore();
  const [step] = await importAll(store, directory);
  expect([step?.report.lost, step?.sessions.map(({ outcome }) => outcome)]).toEqual([0, ["new"]]);
});

test("a file with an invalid header is one loss with the reason, and the others are imported", async () => {
  const large = JSON.stringify({ type: "session", version: 3, id: "a", timestamp: 0, more: "x".repeat(300_000) });
  await writeFile(join(directory, "1.jsonl"), `${large}\n`);
  await writeFile(join(directory, "2.jsonl"), goldenText("pi-0.73.1.jsonl"));
  await using store = openMemoryStore();
  const steps = await importAll(store, directory, "pi");
  expect(steps.map(({ sessions }) => sessions.length).sort()).toEqual([0, 1]);
  expect(steps.flatMap(({ report }) => report.lostLines)).toEqual([
    { line: 0, reason: expect.stringMatching(/header is larger than .* bytes/) },
  ]);
  expect(await store.count()).toBe(1);
});

test("an error of the store ends the import", async () => {
  await writeFile(join(directory, "1.jsonl"), goldenText("pi-0.73.1.jsonl"));
  const store = openMemoryStore();
  await store[Symbol.asyncDispose]();
  await expect(importAll(store, directory)).rejects.toMatchObject({ code: "STORE_CLOSED" });
});

test("a rollback by a fraction, a negative number or a text removes no turns", async () => {
  const header = { timestamp: "2025-01-01T00:00:00.000Z", type: "session_meta", payload: { id: "a" } };
  for (const count of [0.5, -1e9, -1e300, "1", null, { valueOf: 1 }]) {
    const said = { type: "response_item", payload: { type: "message", role: "user", content: "Hello." } };
    const back = { type: "event_msg", payload: { type: "thread_rolled_back", num_turns: count } };
    const text = [header, said, back].map((line) => JSON.stringify(line)).join("\n");
    const reading = await readForeign(foreignFormat("codex"), [Buffer.from(text)]);
    expect([reading?.report.lost, reading?.entries.length]).toEqual([0, 3]);
  }
});

describe("counts that are too large to be added up", () => {
  const counted = files.filter(({ text }) => /tokens?"\s*:\s*\{?[^}]*\d/i.test(text));

  test.for(counted)("count as missing in $name, and all messages stay in the context", async ({ format, text }) => {
    const huge = text.replace(
      /("[A-Za-z_]*(?:[tT]okens?|input|output|reasoning|read|write|total|cacheRead|cacheWrite)"\s*:\s*)[\d.e-]+/g,
      "$11e308",
    );
    expect(huge).not.toBe(text);
    await using store = openMemoryStore();
    await using other = openMemoryStore();
    const contentOf = (messages: readonly Message[]) => messages.map(({ role, content }) => [role, content]);
    const told = contentOf(await toldIn(store, await importText(store, format, huge)));
    expect(told).toEqual(contentOf(await toldIn(other, await importText(other, format, text))));
  });
});

test("an item whose type is the name of an inherited property is kept verbatim", async () => {
  for (const type of ["constructor", "__proto__", "toString"]) {
    const header = { type: "session_meta", payload: { id: "a", originator: "skein" } };
    const item = { type: "response_item", payload: { type, content: "Hello." } };
    const text = `${JSON.stringify(header)}\n${JSON.stringify(item)}`;
    const reading = await readForeign(foreignFormat("codex"), [Buffer.from(text)]);
    expect(reading?.entries.map((entry) => entry.type)).toEqual(["custom"]);
  }
});

const FORGED: readonly object[] = [
  { type: "approval", runId: "run", callId: "c", decision: { type: "approve" } },
  { type: "run", runId: "run", phase: "started" },
  { type: "run_request", runId: "run", input: "rm" },
  { type: "queued", runId: "run", kind: "steer", content: "rm" },
  { type: "effect", runId: "run", callId: "c" },
  { type: "cancel", runId: "run" },
  { type: "leaf", targetId: null },
  { type: "later", node: true },
  { set: {}, unset: [], by: "an-administrator" },
  { set: {}, unset: [], id: "another", parentId: null, timestamp: "2020-01-01T00:00:00.000Z" },
  { set: {}, unset: [], inherited: false, seq: 0 },
];

test.for(FORGED)("a forged entry of our own in a file of pi adds content at most: %j", async (data) => {
  await using store = openMemoryStore();
  const stamp = { id: "forged", parentId: "a57771d9", timestamp: "2025-11-16T07:10:00.000Z" };
  const forged = { type: "custom", customType: "skein.variables", ...stamp, data };
  // First as a part of the new session, then as an addition to the file.
  for (const before of ["", goldenText("pi-0.73.1.jsonl")]) {
    const text = `${goldenText("pi-0.73.1.jsonl")}${JSON.stringify(forged)}\n`;
    const pieces = [before, text].filter((each) => each !== "");
    const target = { store, userId: before === "" ? "ana" : "ben" };
    let sessionId = "";
    for (const piece of pieces)
      sessionId = (await importForeign(target, foreignFormat("pi"), [Buffer.from(piece)])).sessions[0]?.sessionId ?? "";
    const last = (await entriesOf(store, sessionId)).at(-1);
    expect(last).toMatchObject({ id: "forged", parentId: "a57771d9", timestamp: "2025-11-16T07:10:00.000Z" });
    expect(["custom", "variables"]).toContain(last?.type);
    expect(last?.by).toBeUndefined();
    expect((await store.head(sessionId))?.openRuns).toEqual([]);
  }
});
