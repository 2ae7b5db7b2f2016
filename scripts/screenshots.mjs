import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromiumMissing, launchChromium } from "./chromium.mjs";
import { main, root, SetupError } from "./run.mjs";
import { ensureBuild, ensureChromium, ensurePackages } from "./setup.mjs";

const folder = join(root, "docs/images");
const size = { width: 1280, height: 760 };
const bytesMax = 200 * 1024;
/** How long animations take to end. */
const settleMs = 700;

await main(async () => {
  await ensurePackages();
  await ensureBuild();
  await ensureChromium();
  const missing = chromiumMissing();
  if (missing !== null) throw new SetupError(`There is no browser to open the studio in: ${missing}.`);
  const directory = mkdtempSync(join(tmpdir(), "skein-screenshots-"));
  const server = await startServer(directory);
  try {
    mkdirSync(folder, { recursive: true });
    await takeAll(server.url);
  } finally {
    server.child.kill("SIGTERM");
    await new Promise((resolve) => server.child.once("close", resolve));
    rmSync(directory, { recursive: true, force: true });
  }
  return 0;
});

/**
 * Serves the sample sessions in a separate process.
 * @param {string} directory
 */
async function startServer(directory) {
  const program = [
    join(root, "dist/cli/skein.js"),
    "serve",
    "--json",
    "--samples",
    "--port",
    "0",
    "--open-to-this-machine",
  ];
  const places = ["--store", `sqlite:${join(directory, "skein.db")}`, "--workspace", directory];
  const env = { ...process.env, OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "" };
  const child = spawn(process.execPath, ["--no-warnings", ...program, ...places], { env });
  for await (const line of createInterface(child.stdout)) return { child, url: String(JSON.parse(line).url) };
  throw new SetupError("The server ended before it listened.");
}

/** @param {string} url */
async function takeAll(url) {
  const browser = await launchChromium();
  try {
    for (const [name, place] of await placesAt(url)) {
      const at = await place();
      for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
        const context = await browser.newContext({ viewport: size, colorScheme, reducedMotion: "reduce" });
        await take(await context.newPage(), `${url}/${at}`, join(folder, `${name}-${colorScheme}.png`));
        await context.close();
      }
    }
  } finally {
    await browser.close();
  }
}

/**
 * @param {import("playwright-core").Page} page
 * @param {string} address
 * @param {string} path of the picture
 */
async function take(page, address, path) {
  await page.goto(address);
  await page.locator("#root > *").first().waitFor();
  await page.locator(".loading").first().waitFor({ state: "detached" });
  await page.waitForTimeout(settleMs);
  await page.screenshot({ path });
  const { size: bytes } = statSync(path);
  if (bytes > bytesMax) throw new SetupError(`${path} has ${bytes} bytes, which is more than ${bytesMax}.`);
  console.log(`${path} (${Math.ceil(bytes / 1024)} KB)`);
}

/**
 * The pages to capture, with their URLs.
 * @param {string} url
 * @returns {Promise<readonly (readonly [name: string, place: () => Promise<string>])[]>}
 */
async function placesAt(url) {
  const { items } = /** @type {{ items: { name: string, header: { id: string } }[] }} */ (
    await (await fetch(`${url}/api/sessions`)).json()
  );
  /** @param {string} name */
  const idOf = (name) => items.findLast((session) => session.name === name)?.header.id ?? "";
  return [
    ["overview", async () => "#/"],
    ["tools", async () => `#/sessions/${idOf("Fix what one day is called")}/talk?entry=${await failedTest(url, idOf)}`],
    ["transcript", async () => `#/sessions/${idOf("Plan a trip")}/talk`],
    ["compare", async () => `#/sessions/${idOf("Plan a trip")}/compare`],
    ["analytics", async () => "#/analytics"],
    ["fleet", async () => `#/${await busyFleet(url, idOf("Plan a trip"))}`],
    ["lineage", async () => `#/sessions/${await forked(url, idOf("A name for the release"))}/lineage`],
  ];
}

/**
 * The entry of a tool's result in the sample session with tools: the run of a test that fails.
 * @param {string} url
 * @param {(name: string) => string} idOf
 */
async function failedTest(url, idOf) {
  const { items } = /** @type {{ items: { id: string, message?: { content: unknown } }[] }} */ (
    await (await fetch(`${url}/api/sessions/${idOf("Fix what one day is called")}/path?limit=100`)).json()
  );
  return encodeURIComponent(items.find(({ message }) => `${message?.content}`.startsWith('{"exit_code":1'))?.id ?? "");
}

/**
 * Makes a session wait for approval, with further runs in its queue; resolves to the page that shows it.
 * @param {string} url
 * @param {string} id
 */
async function busyFleet(url, id) {
  for (const input of ["write hello to hello.txt", "And now read it.", "And what is in it?"]) {
    await post(`${url}/api/sessions/${id}/runs`, { input, ifBusy: "enqueue" });
  }
  return "fleet";
}

/**
 * Forks a session several times; resolves to the same id.
 * @param {string} url
 * @param {string} id
 */
async function forked(url, id) {
  const birds = await fork(url, id, "other birds");
  await fork(url, id, "names of rivers");
  await fork(url, birds, "birds of the sea");
  return id;
}

/**
 * Makes a fork, to extend the lineage; resolves to its id.
 * @param {string} url
 * @param {string} id
 * @param {string} branchName
 */
async function fork(url, id, branchName) {
  const made = /** @type {{ header: { id: string } }} */ (
    await post(`${url}/api/sessions/${id}/forks`, { branchName })
  );
  return made.header.id;
}

/**
 * Sends a POST request; resolves to the response.
 * @param {string} address
 * @param {object} body
 */
async function post(address, body) {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new SetupError(`The server answered ${answer.status} to ${address}.`);
  return answer.json();
}
