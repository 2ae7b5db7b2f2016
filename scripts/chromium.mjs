import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

// The headless shell comes first, as a page in it takes a third of the processor time.
const programs = ["chromium-headless-shell", "chromium", "chromium-browser"];

// The arguments for a container, which has no sandbox and no GPU; network requests of the browser itself are disabled.
const launchArguments = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

/** The path of the Chromium for the browser tests: SKEIN_TEST_CHROMIUM, else an installed one; null without one. */
function chromiumProgram() {
  const given = process.env.SKEIN_TEST_CHROMIUM;
  if (given) return given;
  const folders = (process.env.PATH ?? "").split(delimiter);
  return (
    programs.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path)) ?? null
  );
}

/** Why Chromium is missing; null if it is installed. */
export function chromiumMissing() {
  return chromiumProgram() === null ? "chromium is not installed and SKEIN_TEST_CHROMIUM is not set" : null;
}

/**
 * Starts Chromium, with optional further arguments.
 * @param {readonly string[]} more
 */
export async function launchChromium(more = []) {
  // Imported here, as the packages may have been installed by this process.
  const { chromium } = await import("playwright-core");
  return chromium.launch({ executablePath: chromiumProgram() ?? "", args: [...launchArguments, ...more] });
}
