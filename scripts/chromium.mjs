import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

// The first has no windows, and a page in it takes a third of the processor time.
const programs = ["chromium-headless-shell", "chromium", "chromium-browser"];

// How it is started: in a container it has neither a sandbox nor a GPU, and it is to ask nobody anything.
const launchArguments = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

/** The path of the Chromium that the tests of the studio drive: what SKEIN_TEST_CHROMIUM names, or Debian's; else null. */
function chromiumProgram() {
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

/**
 * Starts it, with more arguments if there are some.
 * @param {readonly string[]} more
 */
export async function launchChromium(more = []) {
  // Loaded here, as the packages may have been installed only now.
  const { chromium } = await import("playwright-core");
  return chromium.launch({ executablePath: chromiumProgram() ?? "", args: [...launchArguments, ...more] });
}
