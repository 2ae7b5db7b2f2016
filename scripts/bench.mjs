import { existsSync } from "node:fs";
import { join } from "node:path";
import { main, root, run, SetupError } from "./run.mjs";
import { buildBench, ensureBuild, ensurePackages } from "./setup.mjs";

await main(async () => {
  if (!existsSync(join(root, "bench/main.ts"))) throw new SetupError("There is no bench/main.ts to run.");
  await ensurePackages();
  await ensureBuild();
  return run(process.execPath, [join(await buildBench(), "main.js"), ...process.argv.slice(2)]);
});
