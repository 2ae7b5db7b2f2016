import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { Entry, EntryBody } from "../../session/entry.ts";
import { isNode } from "../../session/entry.ts";
import { EMPTY_PATH, emptyHead, type PathSummary, stepHead, stepPath } from "../../session/fold.ts";
import { createHeader } from "../../session/header.ts";
import { EntryRun, hashId } from "./entry-run.ts";
import { EntryTable } from "./entry-table.ts";
import { SettingsTable } from "../../session/settings.ts";
import { decodeAnchors, decodeHashes, formatBlock, formatRest, headOf, parseBlock, parseRest } from "./index-block.ts";

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
  { type: "leaf", targetId: "e1" },
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
  return head;
}

test("a change of the fold changes the format, as indexes carry heads that were folded before", () => {
  const sum = createHash("sha256").update(JSON.stringify(sampleHead())).digest("hex").slice(0, 16);
  // When this fails because the fold was changed: raise FORMAT in index-block.ts, and put the new sum here.
  expect(sum).toBe("2c1038d69e448c6e");
});

test("a block comes back as it was, and not at all when a byte of it has changed", () => {
  const run = new EntryRun({ seq: 10, offset: 1000 });
  const offsets: number[] = [];
  for (let i = 0; i < 100; i++) {
    const offset = 1000 + Math.floor(i / 3) * 5000;
    offsets.push(offset);
    run.add(hashId(`e${i}`), offset);
  }
  const head = { ...sampleHead(), version: 110 };
  const cut = { end: { seq: 110, offset: 200_000 }, lines: 35, head, check: 7 };
  const line = formatBlock(run, run.from, cut, { headerCheck: 8, stamp: { ino: 1, size: 200_000, mtimeMs: 1.25 } });
  const block = parseBlock(line.slice(0, -1));
  if (block === null) throw new Error("the block was not read");
  expect(block).toMatchObject({ from: run.from, end: cut.end, lines: 35, check: 7, headerCheck: 8 });
  expect(headOf(block, HEADER, TIME)).toEqual(head);
  expect([...decodeHashes(block)]).toEqual(run.hashes);
  for (const { seq, offset } of decodeAnchors(block)) expect(offset).toBe(offsets[seq - 10]);
  expect(decodeAnchors(block).length).toBeGreaterThan(4);
  for (let at = 0; at < line.length - 1; at += 7) {
    const changed = `${line.slice(0, at)}${line[at] === "1" ? "2" : "1"}${line.slice(at + 1, -1)}`;
    expect(parseBlock(changed)).toBeNull();
  }
  expect(parseRest(line.slice(0, -1))).toBeNull();
  expect(parseRest(formatRest({ ino: 1, size: 2, mtimeMs: 3.5 }).slice(0, -1))).toEqual({
    ino: 1,
    size: 2,
    mtimeMs: 3.5,
  });
});

test("a table finds every entry and the piece of the log that it stands in", () => {
  const table = new EntryTable(500);
  const run = new EntryRun({ seq: 0, offset: 500 });
  const count = 5000;
  for (let i = 0; i < count; i++) {
    const offset = 500 + Math.floor(i / 2) * 300;
    table.add(hashId(`id-${i}`), offset);
    run.add(hashId(`id-${i}`), offset);
    table.endAt(offset + 300);
  }
  expect(table.count).toBe(count);
  for (let i = 0; i < count; i += 13) {
    expect([...table.candidates(hashId(`id-${i}`))]).toContain(i);
    const { seq, offset, endSeq, endOffset } = table.spanOf(i);
    expect(seq <= i && i < endSeq).toBe(true);
    expect(offset).toBe(500 + (seq / 2) * 300);
    expect(endOffset - offset).toBeLessThan(40_000);
    expect((run.anchorBefore(i)?.seq ?? count) <= i).toBe(true);
    expect(run.anchorAfter(i)?.seq ?? count).toBeGreaterThanOrEqual(i);
  }
  const rest = run.rest({ seq: 1000, offset: 500 + 500 * 300 });
  expect(rest.hashes).toEqual(run.hashes.slice(1000));
  expect(rest.endSeq).toBe(count);
  expect(table.mayHave(hashId("another"))).toBe(false);
});
