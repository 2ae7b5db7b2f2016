import { expect, test } from "vitest";
import { attachmentStores, runAttachmentTrial } from "../torture/attachment-trial.mjs";
import { redisSkip } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";

/** `npm run torture -- --kind attachments` has 200. */
const KILLS = 2;
const DURATION_MS_MAX = 180_000;

test.for(attachmentStores)(
  "processes that append, fork, sweep and erase attachments in %s and are killed lose no bytes of an entry, and leave none that were erased or that nothing refers to",
  { timeout: DURATION_MS_MAX },
  async (store, context) => {
    if (store.startsWith("redis") && redisSkip !== null) return skipBecause(context, redisSkip);
    const { violations, kills, entries } = await runAttachmentTrial(store, {
      durationMs: DURATION_MS_MAX,
      killsMax: KILLS,
    });
    expect(violations).toEqual([]);
    expect(kills).toBe(KILLS);
    expect(entries).toBeGreaterThan(0);
  },
);
