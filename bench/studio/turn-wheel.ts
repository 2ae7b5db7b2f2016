import { setTimeout as wait } from "node:timers/promises";
import type { Page } from "playwright-core";

/** How a wheel is turned: so many times, by so many pixels, with such a pause between. */
export interface WheelTurns {
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
