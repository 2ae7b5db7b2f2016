import { watchForWords } from "./page-scripts.ts";
import type { Conversation } from "./store-conversation.ts";
import type { StudioBrowser } from "./studio-browser.ts";

/** The cost of opening a session in a new tab. */
export interface Opening {
  /** From the navigation until the last turn was rendered in the viewport. */
  readonly shownMs: number;
  /** The bytes of the server's API responses until then. */
  readonly answerBytes: number;
}

/** Opens two sessions alternately, each the given number of times; with several times, after one warm-up. */
export async function measureOpening(
  browser: StudioBrowser,
  sessions: Readonly<Record<"long" | "short", Conversation>>,
  rounds: number,
): Promise<Record<"long" | "short", Opening[]>> {
  const openings: Record<"long" | "short", Opening[]> = { long: [], short: [] };
  for (let round = rounds > 1 ? -1 : 0; round < rounds; round++) {
    for (const which of ["long", "short"] as const) {
      const opening = await openOnce(browser, sessions[which]);
      if (round >= 0) openings[which].push(opening);
    }
  }
  return openings;
}

async function openOnce(browser: StudioBrowser, { sessionId, lastWords }: Conversation): Promise<Opening> {
  await using opened = await browser.open(sessionId, watchForWords(lastWords));
  const shownMs = await opened.page.evaluate<number>("shownMs");
  const answerBytes = await opened.page.evaluate<number>(
    `performance.getEntriesByType("resource")
      .filter(({ name, responseEnd }) => name.includes("/api/") && responseEnd > 0 && responseEnd <= ${shownMs})
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
  );
  return { shownMs, answerBytes };
}
