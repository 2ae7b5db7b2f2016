import { main } from "./run.mjs";
import { ensureBuild, ensurePackages } from "./setup.mjs";

await main(async () => {
  await ensurePackages();
  await ensureBuild();
  return 0;
});
