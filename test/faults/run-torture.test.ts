import { expect, test } from "vitest";
import { runRunsTrial, runStores } from "../torture/runs-trial.mjs";

/** `npm run torture` has more. */
const KILLS = 4;
const DURATION_MS_MAX = 180_000;

test.each(runStores)(
  "of runs in %s whose processes are killed at random, each comes to its end and does nothing twice",
  async (store) => {
    const { violations, kills, effects } = await runRunsTrial(store, {
      durationMs: DURATION_MS_MAX,
      killsMax: KILLS,
    });
    expect(violations).toEqual([]);
    expect(kills).toBe(KILLS);
    expect(effects).toBeGreaterThan(0);
  },
);
