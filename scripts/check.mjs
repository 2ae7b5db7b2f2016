import { parseArgs } from "node:util";
import { checkInstall } from "./check-install.mjs";
import { main, runPackage } from "./run.mjs";
import { checkTypes, ensureBuild, ensurePackages } from "./setup.mjs";

await main(async () => {
  const { values } = parseArgs({ options: { install: { type: "boolean" }, only: { type: "string", default: "" } } });
  await ensurePackages();
  await ensureBuild();
  // Takes minutes and needs the network; it only tests the package.
  if (values.install) return (await checkInstall(values.only)) ? 0 : 1;
  const failed = [];
  if (!(await checkTypes())) failed.push("types");
  if ((await runPackage("@biomejs/biome/bin/biome", ["check", "."])) !== 0) failed.push("biome");
  if ((await runPackage("knip/bin/knip.js", [])) !== 0) failed.push("knip");
  if ((await runPackage("publint/src/cli.js", ["--strict"])) !== 0) failed.push("publint");
  console.log(failed.length === 0 ? "All checks passed." : `Failed: ${failed.join(", ")}.`);
  return failed.length === 0 ? 0 : 1;
});
