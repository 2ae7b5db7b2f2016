import axe from "axe-core";
import type { Page } from "playwright-core";

/** What axe finds that keeps someone from using the page. */
export async function seriousFindings(page: Page): Promise<string[]> {
  // The policy of the page stops scripts that it did not bring; the debugger's are no part of it.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<{
    violations: { id: string; impact: string; nodes: { html: string; target: string[] }[] }[];
  }>("axe.run(document, { resultTypes: ['violations'] })");
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ target, html }) => `${id}: ${target.join(" ")} ${html.slice(0, 160)}`));
}
