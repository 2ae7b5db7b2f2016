import { createHash } from "node:crypto";
import {
  appendFileSync,
  closeSync,
  fstatSync,
  futimesSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Entry, EntryBody } from "../../session/log/entry.ts";
import { isNode } from "../../session/log/entry.ts";
import { EMPTY_PATH, emptyHead, type PathSummary, stepHead, stepPath } from "../../session/log/fold.ts";
import { createHeader } from "../../session/log/header.ts";
import { type SettingsNode, SettingsTable } from "../../session/log/settings.ts";
import { readIndex, writeIndex } from "./log-index.ts";
import { pathsOf } from "./file-names.ts";

const TIME = "2026-01-15T10:30:00.000Z";
const USAGE = { inputTokens: 1, outputTokens: 2, totalTokens: 3 };
const HEADER = createHeader({ id: "a", createdAt: TIME });

const bodies: readonly EntryBody[] = [
  { type: "message", message: { role: "user", content: [{ type: "text", text: "  one \n two" }] } },
  {
    type: "message",
    message: { role: "assistant", content: "yes", provider: "p", model: "m", usage: USAGE, cost: 0.5 },
  },
  { type: "message", message: { role: "tool", toolCallId: "c", name: "t", content: "r" } },
  { type: "variables", set: { k: 1, l: [2] }, unset: [], systemPrompt: "be brief", activeTools: ["t"] },
  { type: "variables", set: {}, unset: ["k"], systemPrompt: null, activeSkills: ["s"] },
  { type: "model_change", provider: "q", modelId: "n" },
  { type: "thinking_level_change", thinkingLevel: "high" },
  { type: "compaction", summary: "s", firstKeptEntryId: "e1", tokensBefore: 5, usage: USAGE },
  { type: "branch_summary", summary: "b", fromId: null },
  { type: "custom_message", customType: "c", content: "x", display: true },
  { type: "custom", customType: "c" },
  { type: "leaf", targetId: "e5" },
  { type: "label", targetId: "e0", label: "l" },
  { type: "session_info", name: "name" },
  { type: "status", status: "suspended", reason: "r" },
  { type: "run", runId: "r1", phase: "started" },
  { type: "run", runId: "r2", phase: "started" },
  { type: "run", runId: "r1", phase: "finished" },
  { type: "compaction_undone", targetId: "e7" },
  { type: "prune", targetId: "e9" },
  { type: "trailer", closedAt: TIME, entryCount: 20, usage: USAGE },
];

function sampleHead() {
  const paths = new Map<string | null, PathSummary>([[null, EMPTY_PATH]]);
  const settings = new SettingsTable();
  let head = emptyHead(HEADER);
  for (const [seq, body] of bodies.entries()) {
    const entry = { ...body, id: `e${seq}`, parentId: head.leafId, timestamp: TIME, seq } as Entry;
    const target = entry.type === "leaf" ? entry.targetId : null;
    const path = isNode(entry)
      ? stepPath(paths.get(entry.parentId) as PathSummary, entry, HEADER, settings.at)
      : (paths.get(target) as PathSummary);
    settings.add(path.settings);
    paths.set(entry.id, path);
    head = stepHead(head, entry, path, TIME);
  }
  return { head, settings: settings.chainOf(head.path.settings) as readonly SettingsNode[] };
}

/** An open log with filler lines instead of entries, and its index. */
function makeLog() {
  const directory = mkdtempSync(join(tmpdir(), "skein-index-"));
  const paths = pathsOf(join(directory, "a.jsonl"));
  writeFileSync(paths.log, `${"h".repeat(99)}\n${`${"x".repeat(999)}\n`.repeat(300)}`);
  const fd = openSync(paths.log, "r+");
  onTestFinished(() => {
    closeSync(fd);
    rmSync(directory, { recursive: true });
  });
  const identity = { paths, ino: fstatSync(fd).ino, headerEnd: 100, headerCheck: 8 };
  const pointAt = (seq: number) => {
    const { head, settings } = sampleHead();
    return { end: { seq, offset: 100 + seq * 1000 }, head: { ...head, version: seq }, settings };
  };
  return { fd, paths, identity, pointAt };
}

test("the sum of a sample head is the one recorded for this format, since stored indexes hold folded heads", () => {
  const sum = createHash("sha256").update(JSON.stringify(sampleHead().head)).digest("hex").slice(0, 16);
  // When this fails because the fold was changed: raise FORMAT in log-index.ts, and put the new sum here.
  expect(sum).toBe("c6c2c102d9bc534d");
});

test("an index gives back the head that was written, and nothing if a byte of its line has changed", () => {
  const { fd, paths, identity, pointAt } = makeLog();
  const coverage = writeIndex(identity, fd, pointAt(200), null);
  expect(coverage).toEqual({ offset: 200_100, length: readFileSync(paths.index).length });
  expect(readIndex(identity, HEADER, fd)).toEqual({ point: pointAt(200), coverage });
  const line = readFileSync(paths.index, "utf8");
  for (let at = 0; at < line.length - 1; at += 7) {
    writeFileSync(paths.index, `${line.slice(0, at)}${line[at] === "1" ? "2" : "1"}${line.slice(at + 1)}`);
    expect(readIndex(identity, HEADER, fd)).toBeNull();
  }
});

test("an index of another format, log or modification time is ignored, and the next writer rewrites it", () => {
  const { fd, paths, identity, pointAt } = makeLog();
  writeIndex(identity, fd, pointAt(150), null);
  expect(readIndex({ ...identity, headerCheck: 9 }, HEADER, fd)).toBeNull();
  expect(readIndex({ ...identity, ino: 1 }, HEADER, fd)).toBeNull();
  futimesSync(fd, 5, 5);
  expect(readIndex(identity, HEADER, fd)).toBeNull();
  writeFileSync(paths.index, '00000000 {"format":3,"hashes":"AAAA"}\n'.repeat(9));
  expect(readIndex(identity, HEADER, fd)).toBeNull();
  writeIndex(identity, fd, pointAt(200), null);
  expect(readFileSync(paths.index, "utf8").split("\n")).toHaveLength(2);
  expect(readIndex(identity, HEADER, fd)?.point.end).toEqual({ seq: 200, offset: 200_100 });
});

test("an index of a log that has grown is used, but not if the bytes before its offset have changed", () => {
  const { fd, paths, identity, pointAt } = makeLog();
  writeIndex(identity, fd, pointAt(200), null);
  appendFileSync(paths.log, "more\n");
  expect(readIndex(identity, HEADER, fd)?.point).toEqual(pointAt(200));
  writeSync(fd, "y", 200_000);
  expect(readIndex(identity, HEADER, fd)).toBeNull();
});

test("an index is rewritten when its log has grown enough, and a larger index later", () => {
  const { fd, identity, pointAt } = makeLog();
  const first = writeIndex(identity, fd, pointAt(140), null);
  expect(first.offset).toBe(140_100);
  expect(writeIndex(identity, fd, pointAt(200), first)).toEqual(first);
  expect(writeIndex(identity, fd, pointAt(210), first).offset).toBe(210_100);
  const long = { ...first, length: 60_000 };
  expect(writeIndex(identity, fd, pointAt(210), long)).toEqual(long);
});

test("after a small append only the stamp in the index is updated", () => {
  const { fd, paths, identity, pointAt } = makeLog();
  const first = writeIndex(identity, fd, pointAt(200), null);
  futimesSync(fd, 5, 5);
  expect(readIndex(identity, HEADER, fd)).toBeNull();
  expect(writeIndex(identity, fd, pointAt(210), first)).toEqual(first);
  expect(readIndex(identity, HEADER, fd)).toEqual({ point: pointAt(200), coverage: first });
  appendFileSync(paths.index, "12345678 half");
  expect(readIndex(identity, HEADER, fd)?.coverage).toEqual(first);
});
