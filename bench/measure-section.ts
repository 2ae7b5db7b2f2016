import { Fixtures } from "./fixtures.ts";
import type { Row } from "./row.ts";
import { sections } from "./sections/sections.ts";
import { FULL_SIZES, QUICK_SIZES } from "./sizes.ts";

/** The section to measure, and its options. */
export interface SectionInput {
  readonly name: string;
  readonly quick: boolean;
  readonly peers: boolean;
  /** The folder of the fixtures. */
  readonly folder: string;
  /** The start of the whole run, from `Date.now()`. */
  readonly startedAt: number;
}

/**
 * Measures one section, in a separate process: code compiled for earlier sections, and memory fragmented by them, must
 * not affect it.
 */
export async function measureSection({ name, quick, peers, folder, startedAt }: SectionInput): Promise<Row[]> {
  const section = sections.find((each) => each.name === name);
  if (section === undefined) throw new Error(`There is no section ${name}.`);
  const sizes = quick ? QUICK_SIZES : FULL_SIZES;
  const progress = progressSince(startedAt);
  return section.run({ sizes, fixtures: new Fixtures(folder, sizes.entriesKept, progress), peers, progress });
}

/** Prints progress on stderr, with the seconds since a time. */
export function progressSince(startedAt: number): (text: string) => void {
  return (text) => console.error(`${Math.round((Date.now() - startedAt) / 1000)} s  ${text}`);
}
