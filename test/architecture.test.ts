import { type Dirent, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import * as rules from "./architecture/rules.ts";
import { architecture } from "./architecture/table.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const everything = ["src", "test", "bench", "examples"].flatMap(readFolder);
const sources = everything.filter(({ path }) => path.startsWith("src/"));
// Tests sit beside what they test, and may use any store, driver or file to do it.
const shipped = sources.filter(({ path }) => !path.endsWith(".test.ts"));

test("there are sources to check", () => {
  expect(shipped.length).toBeGreaterThan(0);
});

test("folders import only what the table allows them", () => {
  expect(rules.checkFolders(shipped, architecture)).toEqual([]);
});

test("no two folders import each other, and the table does not allow it", () => {
  expect(rules.checkFolderCycles(shipped)).toEqual([]);
  expect(rules.findCycles(architecture.mayImport)).toEqual([]);
});

test("each driver is loaded lazily and in one place, and nothing else is a package", () => {
  expect(rules.checkDrivers(shipped, architecture)).toEqual([]);
});

test("frameworks are imported only by the parts that are written in them", () => {
  expect(rules.checkFrameworks(shipped, architecture)).toEqual([]);
});

test("the session folder runs without the modules of Node", () => {
  expect(rules.checkPortable(shipped, architecture)).toEqual([]);
});

test("the environment and the command line are read in named places only", () => {
  expect(rules.checkWorldReads(shipped, architecture)).toEqual([]);
});

test("exports have names", () => {
  expect(rules.checkDefaultExports(everything)).toEqual([]);
});

test("relative imports name files as they are on disk", () => {
  expect(rules.checkImportEndings(everything)).toEqual([]);
});

test("file names are kebab-case and describe their contents", () => {
  expect(rules.checkNames(everything)).toEqual([]);
});

test("modules that test files share have no hooks, which would count for the first file of a process only", () => {
  const setUp = /^test\/(?:progress|file-end-setup)\.ts$/;
  const shared = everything.filter(({ path }) => !path.endsWith(".test.ts") && !setUp.test(path));
  expect(shared.filter(({ text }) => /^(?:before|after)(?:All|Each)\(/m.test(text)).map(({ path }) => path)).toEqual(
    [],
  );
});

test("everything that package.json exports has a source", () => {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  expect(rules.checkExports(exports, shipped)).toEqual([]);
});

function readFolder(folder: string): rules.SourceFile[] {
  return listFolder(folder)
    .filter((path) => path.endsWith(".ts"))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

function listFolder(folder: string): string[] {
  let found: Dirent[] = [];
  try {
    found = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  } catch {
    return [];
  }
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .filter((path) => !path.includes("node_modules"));
}
