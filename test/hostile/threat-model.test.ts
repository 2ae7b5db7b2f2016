import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { corpus } from "./corpus.ts";

const page = readFileSync("docs/threat-model.md", "utf8");
const [tried = "", beside = ""] = page.split("\n## Further attacks\n");

/** The rows of a table: their cells, without the heads. */
function rowsOf(text: string): string[][] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("| ") && !/^\| (?:attack|attacker) \|/.test(line))
    .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "").trim()));
}

/** The tests that a cell names. */
function testsIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+\.test\.ts)`/g)].map(([, path = ""]) => path);
}

const kinds = new Map(Object.entries(corpus).flatMap(([file, rows]) => rows.map(({ kind }) => [kind, file] as const)));

test("every kind of attack has a row in the threat model, and every row is a kind that is tested in the named place", () => {
  const rows = rowsOf(tried);
  expect(rows.map(([kind]) => kind).sort()).toEqual([...kinds.keys()].sort());
  for (const row of rows) {
    expect(row, row[0]).toHaveLength(4);
    expect(testsIn(row[3] ?? ""), row[0]).toContain(kinds.get(row[0] ?? ""));
  }
});

test("every test that the threat model names exists", () => {
  const named = [...rowsOf(tried), ...rowsOf(beside)].flatMap((row) => testsIn(row.at(-1) ?? ""));
  expect(named.length).toBeGreaterThan(kinds.size);
  expect(named.filter((path) => !existsSync(path))).toEqual([]);
  for (const row of rowsOf(beside)) expect(testsIn(row.at(-1) ?? ""), row.join(" | ")).not.toEqual([]);
});

test("the corpus has at least 200 attacks of at least 25 kinds, each with a distinct sentence", () => {
  const all = Object.values(corpus).flat();
  const sentences = all.map(({ kind, name }) => `${kind}: ${name}`);
  expect(all.length).toBeGreaterThanOrEqual(200);
  expect(kinds.size).toBeGreaterThanOrEqual(25);
  expect(new Set(sentences).size).toBe(sentences.length);
});
