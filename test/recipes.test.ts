import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { followRecipe, readRecipes, usesPostgres } from "../scripts/recipes.mjs";
import { type PackedPackage, packPackage, unpackPackage } from "./packed-package.ts";
import { postgresUrl } from "./postgres-server.ts";

const recipes = readRecipes();
let place: string;
let packed: PackedPackage;

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "skein-recipes-"));
  packed = await packPackage(place);
});
afterAll(() => rm(place, { recursive: true, force: true }));

test.for(recipes)("the recipe $name runs unchanged, from an empty folder with the packed package", async (recipe) => {
  const folder = join(place, recipe.name);
  await mkdir(folder);
  const env = usesPostgres(recipe) ? { DATABASE_URL: await postgresUrl() } : {};
  const install = async (packages: readonly string[]): Promise<void> => {
    expect(packages).toContain("skein");
    const others = packages.filter((name) => name !== "skein");
    await unpackPackage(packed, folder, others);
  };
  await followRecipe(recipe, { folder, install, env });
});
