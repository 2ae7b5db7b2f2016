import { parseArgs } from "node:util";

/** The options of the command line. */
export interface BenchOptions {
  /** Small sizes: shows that the benchmark runs, but not how fast anything is. */
  readonly quick: boolean;
  /** The sections to run; null runs all. */
  readonly only: readonly string[] | null;
  readonly peers: boolean;
  /** Write the report to docs/benchmarks.md. */
  readonly write: boolean;
  /** End with exit code 1 if a target is missed. */
  readonly strict: boolean;
  /** The revision whose build the requests are compared with; null for none. */
  readonly against: string | null;
}

/** The usage line of the benchmark. */
export const USAGE =
  "npm run bench -- [--quick] [--only <section>,…] [--no-peers] [--write] [--strict] [--against <revision>]";

/** Parses the command line. @throws {TypeError} for an unknown option. */
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
  // Peers take minutes to install and to measure, too long for a quick run.
  return {
    quick,
    only,
    peers: !values["no-peers"] && (!quick || only?.includes("peers") === true),
    write,
    strict,
    against,
  };
}
