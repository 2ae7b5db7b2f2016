import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseBenchOptions, USAGE } from "./bench-options.ts";
import { openFixtureFolder } from "./fixtures.ts";
import { measureSection, progressSince, type SectionInput } from "./measure-section.ts";
import { readTable, renderReport, renderTable } from "./render-report.ts";
import type { Row } from "./row.ts";
import { runInChild } from "./run-in-child.ts";
import { sections } from "./sections/sections.ts";
import { FULL_SIZES, QUICK_SIZES } from "./sizes.ts";

// This file is compiled to .cache/bench/bench/run-bench.js.
const data = fileURLToPath(new URL("../../bench-data", import.meta.url));
const report = fileURLToPath(new URL("../../../docs/benchmarks.md", import.meta.url));

/** Runs the benchmark; resolves to the exit code. */
export async function runBench(args: readonly string[]): Promise<number> {
  const options = parseBenchOptions(args);
  const chosen = sections.filter(({ name }) => options.only?.includes(name) ?? true);
  if (chosen.length === 0) {
    return refuse(`There is no section ${options.only}; there are ${sections.map(({ name }) => name).join(", ")}.`);
  }
  const { quick, peers } = options;
  const startedAt = Date.now();
  const progress = progressSince(startedAt);
  const rows: Row[] = [];
  // The numbers of a quick run mean nothing, so its sections may share a process.
  const measure = quick ? measureSection : (input: SectionInput) => runInChild("section", input);
  await using folder = await openFixtureFolder(data);
  let failed = false;
  for (const { name } of chosen) {
    try {
      rows.push(...(await measure({ name, quick, peers, folder: folder.path, startedAt })));
    } catch (error) {
      // A failed section must not discard the results of the others.
      failed = true;
      rows.push({ section: name, what: "all of it", measured: `failed: ${(error as Error).message}` });
    }
  }
  console.log(renderTable(rows));
  const missed = rows.filter(({ target }) => target?.met === false).length;
  const of = rows.filter(({ target }) => target !== undefined).length;
  progress(`done: ${of - missed} of ${of} targets met${quick ? "; a quick run says nothing about speed" : ""}`);
  if (options.write) {
    const measured = new Map(chosen.map(({ name }) => [name, rows]));
    // Sections that were not run keep the rows of an earlier run.
    const earlier = chosen.length === sections.length ? [] : readTable(await readFile(report, "utf8"));
    const all = sections.flatMap(({ name }) => (measured.get(name) ?? earlier).filter((row) => row.section === name));
    await writeFile(report, renderReport(all, quick ? QUICK_SIZES : FULL_SIZES, options));
  }
  return failed || (options.strict && missed > 0) ? 1 : 0;
}

function refuse(message: string): number {
  console.error(`${message}\nUsage: ${USAGE}`);
  return 2;
}
