import { join } from "node:path";
import { main, root, run } from "./run.mjs";
import { ensureBuild, ensurePackages } from "./setup.mjs";

await main(async () => {
  await ensurePackages();
  await ensureBuild();
  return run(process.execPath, [join(root, "dist/cli/tour.js"), ...process.argv.slice(2)], { cwd: process.cwd() });
});
