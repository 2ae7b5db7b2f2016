import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The record of a peer's installation by `scripts/bench.mjs`. */
export interface Installation {
  readonly packages: Readonly<Record<string, string>>;
  /** Why it cannot be used; null if it can. */
  readonly problem: string | null;
}

const installations = new URL("../../../bench-peers/", import.meta.url);

/** The record of a peer's installation. */
export function installationOf(name: string): Installation {
  try {
    return JSON.parse(readFileSync(fileURLToPath(new URL(`${name}/installation.json`, installations)), "utf8"));
  } catch {
    return { packages: {}, problem: "start the benchmark with npm run bench, which installs it" };
  }
}

/** Imports a module of a peer as a program in its folder would. */
export async function loadInstalled<Module>(name: string, module: string): Promise<Module> {
  const { load } = await import(new URL(`${name}/load.mjs`, installations).href);
  return load(module);
}
