import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";
import { allPlaces, goTo } from "./places.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds that keeps someone from using the page. */
async function seriousFindings(page: Page): Promise<string[]> {
  // The policy of the page stops scripts that it did not bring; the debugger's are no part of it.
  await page.evaluate(axe);
  const { violations } = await page.evaluate<{
    violations: { id: string; impact: string; nodes: { html: string; target: string[] }[] }[];
  }>("axe.run(document, { resultTypes: ['violations'] })");
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ target, html }) => `${id}: ${target.join(" ")} ${html.slice(0, 160)}`));
}

for (const colorScheme of ["light", "dark"] as const) {
  browserTest(
    `axe finds nothing serious in any view when it is ${colorScheme}`,
    async ({ open, server }) => {
      const page = await open({ colorScheme });
      const found: Record<string, string[]> = {};
      for (const [name, at] of await allPlaces(server)) {
        await goTo(page, server, at);
        const findings = await seriousFindings(page);
        if (findings.length > 0) found[name] = findings;
      }
      expect(found).toEqual({});
    },
    { timeoutMs: 60_000 },
  );
}

for (const width of [380, 2560]) {
  browserTest(
    `no view is wider than a window of ${width} pixels`,
    async ({ open, server }) => {
      const page = await open({ viewport: { width, height: 800 } });
      const wide: string[] = [];
      for (const [name, at] of await allPlaces(server)) {
        await goTo(page, server, at);
        const widths = await page.evaluate<number[]>("[document.documentElement.scrollWidth, window.innerWidth]");
        if ((widths[0] ?? 0) > (widths[1] ?? 0)) wide.push(`${name}: ${widths.join(" in ")}`);
      }
      expect(wide).toEqual([]);
    },
    { timeoutMs: 60_000 },
  );
}
