import { expect, test } from "vitest";
import { runRunsTrial, runStores } from "../torture/runs-trial.mjs";

/** `npm run torture` has more. */
const KILLS = 4;
const DURATION_MS_MAX = 180_000;

test.each(runStores)(
  "runs in %s whose processes are killed at random all finish, and no effect is repeated",
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
