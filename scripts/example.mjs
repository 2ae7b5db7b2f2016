import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRedis } from "./redis.mjs";
import { main, root, run, SetupError } from "./run.mjs";
import { buildExamples, ensureBuild, ensurePackages, ensureRedis } from "./setup.mjs";

await main(async () => {
  const wanted = process.argv[2];
  const names = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".ts"));
  const name = names.find((each) => wanted !== undefined && each.startsWith(wanted));
  if (name === undefined) {
    throw new SetupError(`Name the example to run, as in "npm run example 01": ${names.join(", ")}.`);
  }
  await ensurePackages();
  await ensureBuild();
  const program = join(await buildExamples(), name.replace(/\.ts$/, ".js"));
  const cwd = mkdtempSync(join(tmpdir(), "skein-example-"));
  console.error(`Running examples/${name} in ${cwd}.`);
  const usesRedis = readFileSync(program, "utf8").includes("REDIS_URL");
  if (!usesRedis || process.env.REDIS_URL) return run(process.execPath, [program], { cwd });
  await ensureRedis();
  const redis = await startRedis();
  try {
    return await run(process.execPath, [program], { cwd, env: { REDIS_URL: redis.url } });
  } finally {
    await redis.stop();
  }
});
