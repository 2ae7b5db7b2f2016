import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { redisMissing, startRedis } from "../scripts/redis.mjs";
import { skipBecause } from "./skip.ts";

const run = promisify(execFile);
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const names = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".ts"));
const compiled = join(root, ".cache/examples/examples");
let cwd: string;

beforeAll(async () => {
  await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.examples.json"], {
    cwd: root,
  });
  cwd = mkdtempSync(join(tmpdir(), "skein-examples-"));
});

afterAll(() => rmSync(cwd, { recursive: true, force: true }));

describe("the examples", () => {
  test("are all there", () => {
    expect(names.length).toBeGreaterThanOrEqual(4);
  });

  const usesRedis = (name: string) => readFileSync(join(root, "examples", name), "utf8").includes("REDIS_URL");
  const runExample = async (name: string, env: NodeJS.ProcessEnv = {}) => {
    const program = join(compiled, name.replace(/\.ts$/, ".js"));
    const { stdout } = await run(process.execPath, [program], { cwd, env: { ...process.env, ...env } });
    expect(stdout.trim()).not.toBe("");
  };

  test.for(names.filter((name) => !usesRedis(name)))(
    "%s runs on the built package and finds its own output right",
    (name) => runExample(name),
  );

  test.for(names.filter(usesRedis))(
    "%s runs on the built package and a Redis of its own, and finds its own output right",
    async (name, context) => {
      const missing = redisMissing();
      if (missing !== null) skipBecause(context, missing);
      // Its notifications must not reach the workers of other tests.
      const redis = await startRedis();
      await runExample(name, { REDIS_URL: redis.url }).finally(() => redis.stop());
    },
  );
});

test("the agents that the compose files name can be offered", async () => {
  const file = JSON.stringify(new URL("../examples/fleet/agents.mjs", import.meta.url).href);
  const program = `const { agents } = await import(${file}); console.log(agents.map(({ name }) => name).join());`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { cwd });
  expect(stdout.trim()).toBe("clerk");
});

describe("the tour", () => {
  const tour = join(root, "dist/cli/tour.js");

  test("shows a branched, labelled, compacted and forked session, without colours in a pipe", async () => {
    const { stdout } = await run(process.execPath, [tour], { cwd });
    for (const part of [
      "├─ ",
      "└─ ",
      "[plan B]",
      "[packing list]",
      "← leaf",
      "compaction of",
      "it shares the first 16 with its source",
    ]) {
      expect(stdout).toContain(part);
    }
    expect(stdout).not.toContain("\u001b");
  });

  test("accepts a store, explains itself, and answers a mistake with one sentence", async () => {
    expect((await run(process.execPath, [tour, "--store", "memory:"], { cwd })).stdout).toContain("memory:");
    expect((await run(process.execPath, [tour, "--help"], { cwd })).stdout).toContain("Usage:");
    const wrong = await run(process.execPath, [tour, "--store", "nowhere:x"], { cwd }).catch(
      (error: { code: number; stderr: string }) => error,
    );
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining("names no store") });
    const unknown = await run(process.execPath, [tour, "--what"], { cwd }).catch(
      (error: { code: number; stderr: string }) => error,
    );
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("--what") });
  });
});
