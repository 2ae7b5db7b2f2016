import { closeSync, openSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { textsIn } from "./log-line.ts";
import { readPieces } from "./read-lines.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "read-lines-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

// Short lines, one longer than the first piece, one longer than any piece, and characters of several bytes.
const LINES = [
  "a",
  "ü".repeat(70 * 1024),
  "b",
  "€".repeat(500 * 1024),
  "c",
  ...Array.from({ length: 500 }, (_, i) => `line ${i} ✓`),
];

function linesBetween(path: string, from: number, to: number, reverse: boolean): string[] {
  const fd = openSync(path, "r");
  try {
    return [...readPieces(fd, from, to, reverse)].flatMap(({ bytes }) => {
      const texts = textsIn(bytes) ?? [];
      return reverse ? texts.reverse() : texts;
    });
  } finally {
    closeSync(fd);
  }
}

test("reads lines of any length between two offsets, forward and in reverse", () => {
  const path = join(folder, "lines");
  writeFileSync(path, LINES.map((line) => `${line}\n`).join(""));
  const offsets = [0];
  for (const line of LINES) offsets.push((offsets.at(-1) as number) + Buffer.byteLength(line) + 1);
  for (const [first, last] of [
    [0, LINES.length - 1],
    [1, 4],
    [2, 3],
    [4, 4],
    [3, 300],
  ] as const) {
    const between = LINES.slice(first, last);
    const [from, to] = [offsets[first] as number, offsets[last] as number];
    expect(linesBetween(path, from, to, false)).toEqual(between);
    expect(linesBetween(path, from, to, true)).toEqual(between.toReversed());
  }
});

test("reads nothing if the file is shorter than the requested range", () => {
  const path = join(folder, "short");
  writeFileSync(path, "one\ntwo\n");
  expect(linesBetween(path, 4, 12, false)).toEqual([]);
  expect(linesBetween(path, 4, 12, true)).toEqual([]);
});
