import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

const programs = ["chromium", "chromium-browser"];

/** The path of the Chromium that the tests of the studio drive: what SKEIN_TEST_CHROMIUM names, or Debian's; else null. */
export function chromiumProgram() {
  const given = process.env.SKEIN_TEST_CHROMIUM;
  if (given) return given;
  const folders = (process.env.PATH ?? "").split(delimiter);
  return (
    programs.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path)) ?? null
  );
}

/** Why there is no Chromium here, or null when there is one. */
export function chromiumMissing() {
  return chromiumProgram() === null ? "chromium is not installed and SKEIN_TEST_CHROMIUM is not set" : null;
}

/** How it is started: in a container it has neither a sandbox nor a GPU, and it is to ask nobody anything. */
export const chromiumArguments = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];
