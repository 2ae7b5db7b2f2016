import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { onTestFinished } from "vitest";

/** How many of the measured delays are added to a time limit: an action waits for several timers and answers. */
const TURNS_MAX = 10;
const PING_EVERY_MS = 20;

/**
 * Measures the delay of timers in this process and the time of `ping`, until the test ends. The returned function extends a time
 * limit by these, so that a busy machine does not fail the test.
 */
export function measureLag(ping: () => Promise<unknown> = async () => {}): (limitMs: number) => number {
  const lag = monitorEventLoopDelay({ resolution: 10 });
  lag.enable();
  let [answerMs, over] = [0, false];
  const asking = (async () => {
    while (!over) {
      const since = performance.now();
      await ping();
      answerMs = Math.max(answerMs, performance.now() - since);
      await pause(PING_EVERY_MS);
    }
  })();
  onTestFinished(async () => {
    over = true;
    lag.disable();
    await asking;
  });
  return (limitMs) => limitMs + TURNS_MAX * Math.max(lag.max / 1e6, answerMs);
}
