import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SeededRandom } from "../simulation/seeded-random.ts";
import { backends } from "../store-backends.ts";
import { type Break, CacheWorld, PROVIDERS } from "./cache-world.ts";

/** `SKEIN_TEST_SEQUENCES=1000` draws so many on every store; by default, one on each, and more in memory. */
const asked = process.env["SKEIN_TEST_SEQUENCES"];
const STEPS = 14;
const seed = Number(process.env["SKEIN_TEST_SEED"] ?? 1) || Date.now() % 1_000_000;

describe.for(backends)("requests of sessions on the $name store", (backend) => {
  test.for(Object.keys(PROVIDERS) as (keyof typeof PROVIDERS)[])(
    "are never processed anew by %s without a reason, and each break has its cause",
    { timeout: 3_600_000 },
    async (provider) => {
      const sequences = Number(asked ?? (backend.name === "memory" ? 6 : 1));
      const breaks: (Break & { readonly seed: number })[] = [];
      let [answers, falseCauses] = [0, 0];
      for (let index = 0; index < sequences; index++) {
        const directory = await mkdtemp(join(tmpdir(), "skein-cache-"));
        const store = await backend.open(directory);
        try {
          const world = new CacheWorld(new SeededRandom(seed + index), store, provider);
          const result = await world.run(STEPS);
          breaks.push(...result.breaks.map((one) => ({ ...one, seed: seed + index })));
          answers += result.answers;
          falseCauses += result.falseCauses;
        } finally {
          await store.close();
          await rm(directory, { recursive: true, force: true });
        }
      }
      expect(answers).toBeGreaterThan(sequences * 10);
      expect(breaks.length).toBeGreaterThan(sequences / 2);
      const avoidable = breaks.filter(({ reasons }) => reasons.size === 0);
      expect(avoidable).toEqual([]);
      const wrong = breaks.filter(({ reasons, found }) => found === null || !reasons.has(found.type));
      if (process.env["SKEIN_TEST_SEQUENCES"] !== undefined)
        console.log(
          `${backend.name}, ${provider}: ${answers} answers, ${breaks.length} breaks, ${wrong.length} wrong causes, ${falseCauses} false`,
        );
      expect(wrong.slice(0, wrong.length > 0.05 * breaks.length ? 10 : 0)).toEqual([]);
      expect(falseCauses).toBeLessThanOrEqual(0.01 * answers);
    },
  );
});
