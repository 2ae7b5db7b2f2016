import { type Frames, measureFrames } from "./measure-frames.ts";
import { FRAME_WATCH, watchForWords } from "./page-scripts.ts";
import type { Conversation } from "./store-conversation.ts";
import type { StudioBrowser } from "./studio-browser.ts";
import { turnWheel, type WheelTurns } from "./turn-wheel.ts";

/** Scrolls a transcript up from its end, and looks at every frame. */
export async function measureScrolling(
  browser: StudioBrowser,
  { sessionId, lastWords }: Conversation,
  turns: WheelTurns,
): Promise<Frames> {
  await using opened = await browser.open(sessionId, watchForWords(lastWords) + FRAME_WATCH);
  const { page } = opened;
  await page.evaluate("shownMs");
  // What else the page loads is not what scrolling costs.
  await page.locator(".tree-item").first().waitFor();
  return await measureFrames(page, "transcript", () => turnWheel(page, ".transcript-scroller", turns));
}
