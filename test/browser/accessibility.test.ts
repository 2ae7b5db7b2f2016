import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { faultsOf, seriousFindings } from "./axe.ts";
import { browserTest } from "./browser-test.ts";
import { allPlaces, goTo, sampleIds } from "./places.ts";

/** A script for the elements that would have to be scrolled sideways, after two frames for the layout. */
const OVERFLOWING = `new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => {
  const places = [...document.querySelectorAll("html, main, .session-view")];
  resolve(places.filter((each) => each.scrollWidth > each.clientWidth + 1)
    .map((each) => each.tagName + "." + each.className + " needs " + each.scrollWidth + " of " + each.clientWidth));
})))`;

/** Adds axe's findings on a page, light and dark, by the name of the view. */
async function look(page: Page, name: string, found: Record<string, string[]>): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    const findings = await seriousFindings(page);
    if (findings.length > 0) found[`${name}, ${colorScheme}`] = findings;
  }
}

browserTest("axe finds nothing in any view, light and dark, wide and narrow", async ({ open, server }) => {
  const page = await open();
  const found: Record<string, string[]> = {};
  for (const [name, at] of await allPlaces(server)) {
    await goTo(page, server, at);
    const faults = await faultsOf(page);
    if (faults.length > 0) found[name] = faults;
  }
  expect(found).toEqual({});
});

browserTest(
  "axe finds nothing serious in popups, light and dark, and the keyboard opens them",
  async ({ open, server }) => {
    const trip = (await sampleIds(server))("Plan a trip");
    const { header } = await server.client.sessions.create({ name: "Waits for a word" });
    const run = await server.client.runs.start(header.id, { input: "write hello to b.txt" });
    const page = await open();
    const found: Record<string, string[]> = {};
    await goTo(page, server, `#/sessions/${header.id}/talk`);
    await page.getByRole("button", { name: "Approve" }).waitFor();
    await look(page, "a call that waits", found);
    await server.client.runs.cancel(run.sessionId, run.runId);

    await goTo(page, server, `#/sessions/${trip}/talk`);
    await page.getByRole("button", { name: "Share" }).press("Enter");
    await page.getByRole("dialog").waitFor();
    await look(page, "the ways to share", found);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });

    await page.getByRole("tree").focus();
    await page.keyboard.press("ArrowUp");
    await page.getByRole("region", { name: "Selected entry" }).waitFor();
    await look(page, "a selected entry", found);

    await page.getByRole("button", { name: "Filter" }).press("Enter");
    await look(page, "the filters", found);
    expect(found).toEqual({});
  },
);

browserTest(
  "axe finds nothing serious in the files of two checkpoints and in the restore form, and the keyboard opens them",
  async ({ open, server: { client, workspace } }) => {
    const { header } = await client.sessions.create({});
    const names = ["first", "second"];
    for (const note of names) {
      await writeFile(join(workspace, `${"long-".repeat(30)}.txt`), note);
      await client.checkpoints.create(header.id, { files: true, metadata: { note } });
    }
    const page = await open({ at: `#/sessions/${header.id}/checkpoints` });
    for (const name of names) await page.getByRole("listitem", { name }).getByLabel("Compare").press("Space");
    await page.getByRole("list", { name: "Files that differ" }).locator("summary").first().press("Enter");
    await page.locator("pre ins").waitFor();
    await page.getByRole("button", { name: "Restore", exact: true }).first().press("Enter");
    await page.getByLabel(/Also restore its files/).press("Space");
    const found: Record<string, string[]> = {};
    await look(page, "files that differ", found);
    expect([found, await page.getByLabel(/Also restore its files/).isChecked()]).toEqual([{}, true]);
    await page.setViewportSize({ width: 380, height: 800 });
    expect(await page.evaluate<string[]>(OVERFLOWING)).toEqual([]);
  },
);

browserTest("no view is wider than its window, from 380 to 2,560 pixels", async ({ open, server }) => {
  const page = await open();
  const wide: string[] = [];
  for (const [name, at] of await allPlaces(server)) {
    await goTo(page, server, at);
    for (const width of [2560, 380]) {
      await page.setViewportSize({ width, height: 800 });
      wide.push(...(await page.evaluate<string[]>(OVERFLOWING)).map((found) => `${name} in ${width}: ${found}`));
    }
  }
  expect(wide).toEqual([]);
});
