import type { Fixtures } from "./fixtures.ts";
import type { Row } from "./row.ts";
import type { Sizes } from "./sizes.ts";

/** A part of the benchmark that can be run on its own. */
export interface Section {
  /** What `--only` calls it. */
  readonly name: string;
  run(bench: Bench): Promise<Row[]>;
}

/** What a section works with. */
export interface Bench {
  readonly sizes: Sizes;
  readonly fixtures: Fixtures;
  /** Whether other libraries are measured too. */
  readonly peers: boolean;
  /** Tells the user on stderr what is going on. */
  progress(text: string): void;
}
