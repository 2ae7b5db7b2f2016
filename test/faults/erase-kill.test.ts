import { expect, test } from "vitest";
import { eraseStores, runEraseTrial } from "../torture/erase-trial.mjs";

/** `npm run torture` has more. */
const KILLS = 3;
const DURATION_MS_MAX = 180_000;

test.each(eraseStores)(
  "an erasure from %s that is killed at random moments can be repeated, and ends like an undisturbed one",
  async (store) => {
    const { violations, kills } = await runEraseTrial(store, { durationMs: DURATION_MS_MAX, killsMax: KILLS });
    expect(violations).toEqual([]);
    expect(kills).toBe(KILLS);
  },
);
