import { watchForOverview } from "./page-scripts.ts";
import type { StudioBrowser } from "./studio-browser.ts";

/** Opens the first page the given number of times; with several times, after one warm-up. Resolves to the times until it shows sessions. */
export async function measureOverview(browser: StudioBrowser, rounds: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let round = rounds > 1 ? -1 : 0; round < rounds; round++) {
    await using opened = await browser.openOverview(watchForOverview());
    const shownMs = await opened.page.evaluate<number>("overviewMs");
    if (round >= 0) times.push(shownMs);
  }
  return times;
}
