import { findProgram } from "./find-program.ts";

/** How code of one language is run: a program that is given a file. */
export interface Language {
  readonly name: string;
  readonly program: string;
  /** The ending of the file, by which some programs decide how to read it. */
  readonly ending: string;
}

const KNOWN: readonly Language[] = [
  { name: "bash", program: "bash", ending: "sh" },
  { name: "javascript", program: "node", ending: "js" },
  { name: "python", program: "python3", ending: "py" },
  { name: "sh", program: "/bin/sh", ending: "sh" },
];

/** The languages whose program is on this machine. */
export async function findLanguages(env: Readonly<Record<string, string>>): Promise<Language[]> {
  const found = await Promise.all(KNOWN.map(({ program }) => findProgram(program, env["PATH"] ?? "", "/")));
  return KNOWN.filter((_, index) => found[index] !== null);
}
