import { parseArgs } from "node:util";

/** What the command line asks for. */
export interface BenchOptions {
  /** Small sizes: shows that the benchmark runs, and says nothing about speed. */
  readonly quick: boolean;
  /** The sections to run; null runs all. */
  readonly only: readonly string[] | null;
  readonly peers: boolean;
  /** Write the report to docs/benchmarks.md. */
  readonly write: boolean;
  /** End with exit code 1 when a target is missed. */
  readonly strict: boolean;
  /** The revision that requests of this tree are compared with; null for none. */
  readonly against: string | null;
}

/** How to call the benchmark. */
export const USAGE =
  "npm run bench -- [--quick] [--only <section>,…] [--no-peers] [--write] [--strict] [--against <revision>]";

/** Reads the command line. @throws {TypeError} on an option that does not exist. */
export function parseBenchOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      "no-peers": { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      strict: { type: "boolean", default: false },
      against: { type: "string" },
    },
  });
  const { quick, write, strict, against = null } = values;
  const only = values.only?.split(",") ?? null;
  // Peers take minutes to install and to measure, which is not what someone who asks for a quick run expects.
  return {
    quick,
    only,
    peers: !values["no-peers"] && (!quick || only?.includes("peers") === true),
    write,
    strict,
    against,
  };
}
