import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { measureLag } from "../measure-lag.ts";
import { browserTest } from "./browser-test.ts";
import { HOSTILE_TEXTS, hostileEntries, LONG_LINE, MARK } from "./hostile-texts.ts";
import { VIEWS } from "./places.ts";
import type { StudioServer } from "./studio-server.ts";

/** A session with hostile texts in every field; resolves to its id. */
async function hostileSession({ client }: StudioServer): Promise<string> {
  const name = `${HOSTILE_TEXTS[0]}${HOSTILE_TEXTS[1]}`.slice(0, 200);
  const { header } = await client.sessions.create({ name, metadata: { note: HOSTILE_TEXTS[1] ?? "" } });
  await client.sessions.append(header.id, { entries: hostileEntries() });
  await client.sessions.update(header.id, { variables: { set: { [HOSTILE_TEXTS[0] ?? ""]: HOSTILE_TEXTS[1] ?? "" } } });
  await client.checkpoints.create(header.id, { metadata: { note: HOSTILE_TEXTS[0] ?? "" } });
  const fork = await client.sessions.fork(header.id, { branchName: HOSTILE_TEXTS[1]?.slice(0, 100) ?? "" });
  await client.sessions.addTurn(fork.header.id, { role: "user", content: HOSTILE_TEXTS[0] ?? "" });
  return header.id;
}

/** Records every request to another origin. */
function strangersOf(page: Page, url: string): string[] {
  const strangers: string[] = [];
  page.on("request", (request) => {
    const asked = request.url();
    if (!asked.startsWith(url) && !asked.startsWith("data:") && !asked.startsWith("blob:")) strangers.push(asked);
  });
  return strangers;
}

/** Nothing was run, and no link leads to a script. */
async function expectUnharmed(page: Page): Promise<void> {
  expect(await page.evaluate(`"${MARK}" in window`)).toBe(false);
  const links = await page.evaluate<string[]>(`[...document.links].map((link) => link.href)`);
  const bad = links.filter((href) => !/^(?:https?:|mailto:|file:|#|blob:)/.test(href));
  expect(bad).toEqual([]);
  const inside = "main, article, section, body > div";
  const planted = `document.querySelectorAll(${JSON.stringify(`:is(${inside}) :is(iframe, object, embed, base, script)`)}).length`;
  expect(await page.evaluate(planted)).toBe(0);
}

browserTest("a hostile session runs nothing and requests no other host, in any view", async ({ open, server }) => {
  const id = await hostileSession(server);
  const page = await open();
  const strangers = strangersOf(page, server.url);
  for (const view of VIEWS) {
    await page.goto(`${server.url}/#/sessions/${id}/${view}`);
    await page.getByRole("navigation", { name: "Views of the session" }).waitFor();
    await page.waitForLoadState("load");
    // Collapsed content counts as well.
    await page.evaluate(`document.querySelectorAll("details").forEach((each) => { each.open = true; })`);
    await page.waitForTimeout(150);
    await expectUnharmed(page);
  }
  await page.goto(`${server.url}/#/`);
  await page.getByText("<script>").first().waitFor();
  await expectUnharmed(page);
  expect(strangers).toEqual([]);
});

browserTest("a hostile transcript is shown completely as text", async ({ open, server }) => {
  const id = await hostileSession(server);
  const page = await open({ at: `#/sessions/${id}/talk` });
  await page.getByText("The last word.").first().waitFor();
  expect(await page.getByText(`<script>window.${MARK} = true</script>`).count()).toBeGreaterThan(0);
});

browserTest("a line of 5 MB neither freezes the page nor widens it", async ({ open, server }) => {
  const { header } = await server.client.sessions.create({ name: "A long line" });
  for (const role of ["user", "assistant"] as const)
    await server.client.sessions.addTurn(header.id, { role, content: LONG_LINE });
  await server.client.sessions.addTurn(header.id, { role: "user", content: "After the long line." });
  const page = await open({ at: `#/sessions/${header.id}/talk` });
  await page.getByText("After the long line.").first().waitFor();
  const [allowed, startedMs] = [measureLag(), performance.now()];
  for (const view of ["context", "compare", "talk"]) {
    await page.goto(`${server.url}/#/sessions/${header.id}/${view}`);
    await page.waitForTimeout(100);
  }
  await page.getByText("After the long line.").first().waitFor();
  expect(performance.now() - startedMs).toBeLessThan(allowed(6000));
  expect(await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")).toBe(true);
});

browserTest("an exported page, opened from a file, runs nothing and requests no host", async ({ open, server }) => {
  const id = await hostileSession(server);
  const blob = await server.client.sessions.exportFile(id, { format: "html" });
  const directory = await mkdtemp(join(tmpdir(), "skein-export-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, "session.html");
  await writeFile(file, Buffer.from(await blob.arrayBuffer()));
  const url = pathToFileURL(file).href;
  const page = await open({ at: "about://blank" });
  const strangers = strangersOf(page, url);
  await page.goto(url);
  await page.getByText("The last word.").last().waitFor();
  await page.waitForTimeout(150);
  await expectUnharmed(page);
  expect(strangers).toEqual([]);
});

browserTest(
  "the studio has a strict content security policy, which blocks foreign scripts",
  async ({ open, server }) => {
    const policy = (await fetch(server.url)).headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'self'");
    expect(policy).toContain("object-src 'none'");
    expect(policy).not.toMatch(/script-src|unsafe-eval/);
    const page = await open({ mayFail: /Content Security Policy|404/ });
    await page.getByRole("link", { name: "Skein studio" }).waitFor();
    const ran = await page.evaluate(`(async () => {
    const script = document.createElement("script");
    script.textContent = "window.injected = true";
    const image = document.createElement("div");
    image.innerHTML = "<img src=x onerror='window.injected = true'>";
    document.body.append(script, image);
    await new Promise((resolve) => setTimeout(resolve, 200));
    return "injected" in window;
  })()`);
    expect(ran).toBe(false);
  },
);
