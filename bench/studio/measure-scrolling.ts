import { setTimeout as wait } from "node:timers/promises";
import type { Page } from "playwright-core";
import { type Frames, measureFrames } from "./measure-frames.ts";
import { FRAME_WATCH, watchForWords } from "./page-scripts.ts";
import type { Conversation } from "./store-conversation.ts";
import type { StudioBrowser } from "./studio-browser.ts";

/** Scrolls a transcript up from its end, and measures all frames. */
export async function measureScrolling(
  browser: StudioBrowser,
  { sessionId, lastWords }: Conversation,
  turns: WheelTurns,
): Promise<Frames> {
  await using opened = await browser.open(sessionId, watchForWords(lastWords) + FRAME_WATCH);
  const { page } = opened;
  await page.evaluate("shownMs");
  // Other requests of the page must not count.
  await page.locator(".tree-item").first().waitFor();
  return await measureFrames(page, "transcript", () => turnWheel(page, ".transcript-scroller", turns));
}

/** The turns of the wheel: how many, by how many pixels, and the pause between them. */
interface WheelTurns {
  readonly times: number;
  readonly deltaY: number;
  readonly pauseMs: number;
}

/** Turns the wheel over an element. */
export async function turnWheel(page: Page, over: string, { times, deltaY, pauseMs }: WheelTurns): Promise<void> {
  const box = await page.locator(over).boundingBox();
  if (box === null) throw new Error(`The page has no ${over} to scroll.`);
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  for (let time = 0; time < times; time++) {
    await page.mouse.wheel(0, deltaY);
    await wait(pauseMs);
  }
}
