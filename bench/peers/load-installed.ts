import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** What `scripts/bench.mjs` says about a peer's installation. */
export interface Installation {
  readonly packages: Readonly<Record<string, string>>;
  /** Why it cannot be used; null when it can. */
  readonly problem: string | null;
}

const installations = new URL("../../../bench-peers/", import.meta.url);

/** Whether and in which versions a peer is installed. */
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
