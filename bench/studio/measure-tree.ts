import type { Page } from "playwright-core";
import { median } from "../statistics.ts";
import { type Frames, measureFrames } from "./measure-frames.ts";
import { FRAME_WATCH, KEY_WATCH, watchForTree } from "./page-scripts.ts";
import type { Conversation } from "./store-conversation.ts";
import type { StudioBrowser } from "./studio-browser.ts";
import { turnWheel } from "./measure-scrolling.ts";

const TREE = ".tree-canvas";
const KEY_PAUSE_MS = 20;
/** Up, and sometimes back down, so that the same number of keys works in a small tree. */
const KEYS = ["ArrowUp", "ArrowUp", "ArrowDown"] as const;

/** The speed of working with a tree. */
export interface TreeFrames {
  /** From the navigation until it was rendered. */
  readonly drawnMs: number;
  /** During panning and zooming. */
  readonly frames: Frames;
  /** From an arrow key until the next element was rendered as selected. */
  readonly keyMs: number;
}

/** Pans and zooms the tree of a session the given number of times each, and moves through it with the arrow keys. */
export async function measureTree(
  browser: StudioBrowser,
  { sessionId }: Conversation,
  times: number,
): Promise<TreeFrames> {
  await using opened = await browser.open(sessionId, watchForTree() + FRAME_WATCH + KEY_WATCH);
  const { page } = opened;
  const drawnMs = await page.evaluate<number>("drawnMs");
  const frames = await measureFrames(page, "tree", async () => {
    await turnWheel(page, TREE, { times, deltaY: -120, pauseMs: 16 });
    await zoom(page, times, 40);
    await turnWheel(page, TREE, { times, deltaY: 60, pauseMs: 16 });
    await zoom(page, times, -40);
  });
  return { drawnMs, frames, keyMs: await measureKeys(page, times) };
}

async function zoom(page: Page, times: number, deltaY: number): Promise<void> {
  await page.keyboard.down("Control");
  await turnWheel(page, TREE, { times, deltaY, pauseMs: 16 });
  await page.keyboard.up("Control");
}

async function measureKeys(page: Page, times: number): Promise<number> {
  await page.locator(TREE).focus();
  await page.keyboard.press("End");
  for (let time = 0; time < times; time++) {
    await page.keyboard.press(KEYS[time % KEYS.length] as string);
    await page.waitForTimeout(KEY_PAUSE_MS);
  }
  return median(await page.evaluate<number[]>("keyTimesMs"));
}
