import type { Page } from "playwright-core";
import { median } from "../statistics.ts";

/** A longer frame is visible as a stutter. */
const SLOW_MS = 50;

/** The frames during an action in a page. */
export interface Frames {
  readonly count: number;
  readonly medianMs: number;
  /** How many took longer than 50 ms. */
  readonly slow: number;
  /** How many had a gap in the transcript. */
  readonly gaps: number;
  /** The longest sequence of frames with a gap. */
  readonly gapsInARow: number;
}

/** Measures all frames during an action in a page with `FRAME_WATCH`. */
export async function measureFrames(
  page: Page,
  looks: "transcript" | "tree",
  act: () => Promise<void>,
): Promise<Frames> {
  await page.evaluate(`frameWatch.begin(${looks === "transcript"})`);
  await act();
  const { times, gaps } = await page.evaluate<{ times: number[]; gaps: boolean[] }>("frameWatch.end()");
  let [inARow, most] = [0, 0];
  for (const gap of gaps) {
    inARow = gap ? inARow + 1 : 0;
    most = Math.max(most, inARow);
  }
  return {
    count: times.length,
    medianMs: median(times),
    slow: times.filter((time) => time > SLOW_MS).length,
    gaps: gaps.filter((gap) => gap).length,
    gapsInARow: most,
  };
}
