import { join } from "node:path";
import { parseArgs } from "node:util";
import { main, root, run, SetupError } from "./run.mjs";

const usage = `Usage: npm run torture [-- --minutes N] [--store kind] [--seed N] [--seeds N]

Asks stores random things and compares each answer with that of memory; a seed that fails is printed and fails again.

  --minutes N   for how long, at least one round (default 10)
  --store kind  only stores whose name begins so: jsonl, sqlite, postgres, redis (default: all)
  --seed N      the first seed (default: drawn)
  --seeds N     only so many seeds, whatever the time`;

const seedsARound = 250;

await main(async () => {
  const options = readOptions();
  if (options === null) return 0;
  const { store, minutes, seeds } = options;
  const end = Date.now() + minutes * 60_000;
  const limit = seeds === null ? Number.MAX_SAFE_INTEGER : options.first + seeds;
  let first = options.first;
  do {
    const last = Math.min(first + seedsARound, limit) - 1;
    console.log(`Seeds ${first} to ${last}${store === null ? "" : ` on ${store}`}.`);
    const env = {
      SKEIN_SIMULATION_SEEDS: `${first}-${last}`,
      ...(store !== null && { SKEIN_SIMULATION_STORE: store }),
    };
    // What a store needs to run, the tests bring.
    const code = await run(process.execPath, [join(root, "scripts/test.mjs"), "test/simulation.test.ts"], { env });
    if (code !== 0) {
      console.error("A seed failed; the message above names it and says how to run it again.");
      return 1;
    }
    first = last + 1;
    console.log(`${first - options.first} seeds done, none failed.`);
  } while (first < limit && (seeds !== null || Date.now() < end));
  return 0;
});

function readOptions() {
  const { values } = parse();
  if (values.help) {
    console.log(usage);
    return null;
  }
  return {
    store: values.store ?? null,
    minutes: numberOf(values.minutes ?? "10", "minutes"),
    first: values.seed === undefined ? 1 + Math.floor(Math.random() * 1e9) : numberOf(values.seed, "seed"),
    seeds: values.seeds === undefined ? null : numberOf(values.seeds, "seeds"),
  };
}

function parse() {
  try {
    return parseArgs({
      options: {
        minutes: { type: "string" },
        store: { type: "string" },
        seed: { type: "string" },
        seeds: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    throw new SetupError(`${/** @type {Error} */ (error).message}\n\n${usage}`);
  }
}

/**
 * @param {string} text
 * @param {string} name
 */
function numberOf(text, name) {
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number) || number <= 0)
    throw new SetupError(`--${name} is "${text}"; it must be a number above 0.`);
  return name === "minutes" ? number : Math.floor(number);
}
