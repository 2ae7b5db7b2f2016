import { existsSync } from "node:fs";
import { join } from "node:path";
import { main, root, run, SetupError } from "./run.mjs";
import { ensureBuild, ensurePackages } from "./setup.mjs";

await main(async () => {
  await ensurePackages();
  await ensureBuild();
  const tour = join(root, "dist/cli/tour.js");
  if (!existsSync(tour)) throw new SetupError("There is no src/cli/tour.ts, so there is nothing to start.");
  return run(process.execPath, [tour, ...process.argv.slice(2)], { cwd: process.cwd() });
});
