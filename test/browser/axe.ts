import axe from "axe-core";
import type { Page } from "playwright-core";

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly target: readonly string[] }[];
}

/** The findings of axe on the page, or in a part of it, in the current colour scheme. */
async function violationsOf(page: Page, part: string | null): Promise<readonly Violation[]> {
  // The content security policy blocks foreign scripts; evaluation by the debugger is exempt.
  if (await page.evaluate<boolean>("!('axe' in window)")) await page.evaluate(axe.source);
  const at = part === null ? "document" : JSON.stringify(part);
  return page.evaluate(`axe.run(${at}, { resultTypes: ['violations'] }).then(({ violations }) => violations)`);
}

/** The serious findings of axe. */
export async function seriousFindings(page: Page): Promise<string[]> {
  return (await violationsOf(page, null))
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ target, html }) => `${id}: ${target.join(" ")} ${html.slice(0, 160)}`));
}

/**
 * All findings of axe on a page, or in a part of it, and whether it fits its window: wide and narrow, light and dark.
 */
export async function faultsOf(page: Page, part: string | null = null): Promise<string[]> {
  const faults: string[] = [];
  for (const width of [380, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const found = (await violationsOf(page, part)).map(({ id, impact }) => `${id} ${impact}`);
      if (!(await page.evaluate<boolean>(FITS))) found.push("needs to be scrolled sideways");
      faults.push(...found.map((fault) => `${colorScheme}, ${width} wide: ${fault}`));
    }
  }
  return faults;
}

const FITS = `[document.documentElement, document.querySelector("main")].every((each) => each.scrollWidth <= each.clientWidth)`;
