import type { Fixtures } from "./fixtures.ts";
import type { Row } from "./row.ts";
import type { Sizes } from "./sizes.ts";

/** A part of the benchmark that can be run separately. */
export interface Section {
  /** Its name for `--only`. */
  readonly name: string;
  run(bench: Bench): Promise<Row[]>;
}

/** The tools of a section. */
export interface Bench {
  readonly sizes: Sizes;
  readonly fixtures: Fixtures;
  /** Whether other libraries are measured, too. */
  readonly peers: boolean;
  /** Prints progress on stderr. */
  progress(text: string): void;
}
