import { Fixtures } from "./fixtures.ts";
import type { Row } from "./row.ts";
import { sections } from "./sections/sections.ts";
import { FULL_SIZES, QUICK_SIZES } from "./sizes.ts";

/** Which section to measure, and how. */
export interface SectionInput {
  readonly name: string;
  readonly quick: boolean;
  readonly peers: boolean;
  /** Where fixtures are, or are to be. */
  readonly folder: string;
  /** When the whole run began, as `Date.now()` gives it. */
  readonly startedAt: number;
}

/**
 * Measures one section, in a process of its own: what the sections before it have left, such as code that was compiled
 * for other stores and memory in pieces, is not what it costs.
 */
export async function measureSection({ name, quick, peers, folder, startedAt }: SectionInput): Promise<Row[]> {
  const section = sections.find((each) => each.name === name);
  if (section === undefined) throw new Error(`There is no section ${name}.`);
  const sizes = quick ? QUICK_SIZES : FULL_SIZES;
  const progress = progressSince(startedAt);
  return section.run({ sizes, fixtures: new Fixtures(folder, sizes.entriesKept, progress), peers, progress });
}

/** Tells on stderr what is going on, with the seconds since a time. */
export function progressSince(startedAt: number): (text: string) => void {
  return (text) => console.error(`${Math.round((Date.now() - startedAt) / 1000)} s  ${text}`);
}
