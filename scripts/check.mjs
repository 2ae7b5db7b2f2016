import { main, runPackage } from "./run.mjs";
import { checkTypes, ensureBuild, ensurePackages } from "./setup.mjs";

await main(async () => {
  await ensurePackages();
  await ensureBuild();
  const failed = [];
  if (!(await checkTypes())) failed.push("types");
  if ((await runPackage("@biomejs/biome/bin/biome", ["check", "."])) !== 0) failed.push("biome");
  if ((await runPackage("knip/bin/knip.js", [])) !== 0) failed.push("knip");
  if ((await runPackage("publint/src/cli.js", ["--strict"])) !== 0) failed.push("publint");
  console.log(failed.length === 0 ? "All checks passed." : `Failed: ${failed.join(", ")}.`);
  return failed.length === 0 ? 0 : 1;
});
