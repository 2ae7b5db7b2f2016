import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ColdContender, ColdInput, ColdOutput } from "../cold/cold-program.ts";
import { formatCount, formatMs } from "../format.ts";
import { installationOf } from "../peers/load-installed.ts";
import { PI_INSTALLATION } from "../cold/cold-pi.ts";
import { atMost, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { median } from "../statistics.ts";

const section = "cold";
/** Runs a command line on a pseudo-terminal. */
const terminalProgram = "script";
const program = fileURLToPath(new URL("../cold/cold-program.js", import.meta.url));
const importer = fileURLToPath(new URL("../cold/cold-import.js", import.meta.url));
// This file is compiled to .cache/bench/bench/sections.
const cli = fileURLToPath(new URL("../../../../dist/cli/skein.js", import.meta.url));

/** The duration of short programs that open a store, append and exit, each in a new process. */
export const coldSection: Section = {
  name: section,
  async run(bench) {
    const newer = process.env["SKEIN_BENCH_NODE24"];
    const nodes = [process.execPath, ...(bench.peers && newer !== undefined ? [newer] : [])];
    const rows: Row[] = [];
    for (const node of nodes) {
      const label = `Node ${execFileSync(node, ["-p", "process.versions.node"]).toString().trim()}`;
      rows.push(...sessionRows(bench, label, await measureSessions(bench, { node, label, newer })));
      bench.progress(`cold: imports, ${label}`);
      rows.push(...startRows(bench, node, label));
      bench.progress(`cold: skein without a command, ${label}`);
      rows.push(...(await overviewRows(bench, node, label)));
    }
    return rows;
  },
};

type Operation = ColdInput["operation"];
const operations: readonly Operation[] = ["append", "context", "fork"];

/** The times of each round, by contender and operation. */
type Measured = Readonly<Partial<Record<ColdContender, Readonly<Record<Operation, ColdOutput[]>>>>>;

async function measureSessions(
  bench: Bench,
  { node, label, newer }: { readonly node: string; readonly label: string; readonly newer: string | undefined },
): Promise<Measured> {
  const pi = bench.peers && newer !== undefined && installationOf(PI_INSTALLATION).problem === null;
  const names: ColdContender[] = ["bare file", "bare SQLite", ...(pi ? (["pi"] as const) : []), "sqlite", "jsonl"];
  const measured = Object.fromEntries(
    names.map((name) => [name, { append: [], context: [], fork: [] } as Record<Operation, ColdOutput[]>]),
  ) as Partial<Record<ColdContender, Record<Operation, ColdOutput[]>>>;
  for (let round = 0; round < bench.sizes.coldRounds; round++) {
    bench.progress(`cold: sessions in new processes, ${label}, round ${round + 1} of ${bench.sizes.coldRounds}`);
    for (const contender of round % 2 === 0 ? names : names.toReversed()) {
      const folder = await bench.fixtures.folder("cold");
      let key: string | null = null;
      for (const operation of operations) {
        const input: ColdInput = { contender, operation, folder, key, messages: bench.sizes.coldMessages };
        // pi does not run on Node 20, so it always gets a newer one.
        const output = runCold(contender === "pi" && newer !== undefined ? newer : node, input);
        key = output.key;
        measured[contender]?.[operation].push(output);
      }
      await rm(folder, { recursive: true, force: true });
    }
  }
  return measured;
}

function runCold(node: string, input: ColdInput): ColdOutput {
  const printed = execFileSync(node, ["--no-warnings", program, JSON.stringify(input)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return JSON.parse(printed.toString()) as ColdOutput;
}

/** The comparisons, with the maximum ratio. */
const comparisons: readonly (readonly [Operation, ColdContender, ColdContender, number?])[] = [
  ["append", "sqlite", "bare SQLite", 1.6],
  ["append", "jsonl", "pi", 1.5],
  ["append", "jsonl", "bare file"],
  ["context", "sqlite", "pi", 1.5],
  ["context", "jsonl", "pi", 1.5],
  ["context", "jsonl", "bare file"],
  ["fork", "sqlite", "pi"],
  ["fork", "jsonl", "pi", 1],
  ["fork", "jsonl", "bare file"],
];

function sessionRows(bench: Bench, label: string, measured: Measured): Row[] {
  const messages = formatCount(bench.sizes.coldMessages);
  const names: Record<Operation, string> = {
    append: `${messages} appends`,
    context: `open and build the context of ${messages} messages`,
    fork: `fork ${messages} messages`,
  };
  return comparisons.flatMap(([operation, contender, other, limit]): Row[] => {
    const times = measured[contender]?.[operation] ?? [];
    const others = measured[other]?.[operation];
    if (others === undefined) return [];
    const opening = formatMs(median(times.map(({ openMs }) => openMs)));
    return [
      compared(
        `${contender}, ${names[operation]}, ${label}`,
        times.map(({ timeMs }) => timeMs),
        { name: other, times: others.map(({ timeMs }) => timeMs), limit, beside: ` (import and open: ${opening})` },
      ),
    ];
  });
}

/** How long a program takes to start. */
function startRows(bench: Bench, node: string, label: string): Row[] {
  const modules: Record<string, number[]> = { skein: [], fastify: [], express: [], hono: [] };
  const version: number[] = [];
  const nothing: number[] = [];
  for (let round = 0; round < bench.sizes.coldRounds; round++) {
    for (const [name, times] of Object.entries(modules)) {
      times.push(Number(execFileSync(node, ["--no-warnings", importer, name]).toString()));
    }
    version.push(wholeMs(node, [cli, "--version"]));
    nothing.push(wholeMs(node, ["-e", "0"]));
  }
  const { skein = [], ...others } = modules;
  const imports = Object.entries(others).map(([name, times]) =>
    compared(`import "skein", ${label}`, skein, { name, times, limit: name === "fastify" ? 1 : undefined }),
  );
  return [
    ...imports,
    compared(`skein --version, ${label}`, version, { name: "node -e 0", times: nothing, limit: 2.5 }),
  ];
}

/** How long `skein` without a command takes on a terminal, in a home without sessions of other programs and in one with many. */
async function overviewRows(bench: Bench, node: string, label: string): Promise<Row[]> {
  const what = `skein without a command, ${label}`;
  if (spawnSync(terminalProgram, ["--version"]).error !== undefined)
    return [{ section, what, measured: `not measured: ${terminalProgram} of util-linux is not installed` }];
  const empty = await bench.fixtures.folder("empty-home");
  const full = await bench.fixtures.folder("foreign-home");
  const { foreignSessions } = bench.sizes;
  for (let index = 0; index < foreignSessions; index++) {
    const project = join(full, ".claude", "projects", `-srv-${index % 100}`);
    if (index < 100) await mkdir(project, { recursive: true });
    await writeFile(join(project, `${index}.jsonl`), "{}\n");
  }
  const times: Record<"version" | "empty" | "full", number[]> = { version: [], empty: [], full: [] };
  for (let round = 0; round < bench.sizes.coldRounds; round++) {
    times.version.push(terminalMs(node, ["--version"], empty));
    times.empty.push(terminalMs(node, [], empty));
    times.full.push(terminalMs(node, [], full));
  }
  const fullMs = median(times.full);
  return [
    compared(`${what}, nothing to show`, times.empty, { name: "skein --version", times: times.version, limit: 1.5 }),
    {
      section,
      what: `${what}, ${formatCount(foreignSessions)} sessions of another program`,
      measured: formatMs(fullMs),
      target: atMost(fullMs, 300, " ms"),
    },
  ];
}

/** The time of a command line of `skein` on a pseudo-terminal. */
function terminalMs(node: string, args: readonly string[], home: string): number {
  const { SKEIN_HOME: _home, SKEIN_STORE: _store, CLAUDE_CONFIG_DIR: _claude, ...inherited } = process.env;
  const env = { ...inherited, HOME: home, TERM: "xterm-256color" };
  const startedAt = performance.now();
  execFileSync(terminalProgram, ["-qec", [node, cli, ...args].map((each) => `'${each}'`).join(" "), "/dev/null"], {
    env,
  });
  return performance.now() - startedAt;
}

function wholeMs(node: string, args: readonly string[]): number {
  const startedAt = performance.now();
  execFileSync(node, args);
  return performance.now() - startedAt;
}

interface Other {
  readonly name: string;
  readonly times: readonly number[];
  readonly limit?: number | undefined;
  readonly beside?: string;
}

/** Both sides of a ratio ran in the same round, so that a temporarily slow machine does not change it. */
function compared(what: string, times: readonly number[], { name, times: others, limit, beside = "" }: Other): Row {
  const ratio = median(times.map((time, round) => time / (others[round] ?? Number.NaN)));
  return {
    section,
    what,
    measured: `${formatMs(median(times))}${beside}`,
    against: `${formatMs(median(others))} ${name}`,
    ratio,
    ...(limit === undefined ? {} : { target: atMost(ratio, limit) }),
  };
}
