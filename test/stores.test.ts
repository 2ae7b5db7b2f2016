import { expect, test } from "vitest";
import { storeCases } from "../src/testing/index.ts";
import { everyDriver, kindOf, missingBackends, sqliteDrivers } from "./store-backends.ts";
import { testStores } from "./store-suite.ts";

test("every case has a unique name", () => {
  expect(new Set(storeCases.map(({ name }) => name)).size).toBe(storeCases.length);
});

test("runs every SQLite driver that this version of Node has", () => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const hasOwn = major > 22 || (major === 22 && minor >= 13);
  expect(sqliteDrivers).toEqual(hasOwn ? ["libsql", "node:sqlite"] : ["libsql"]);
});

test("every kind of store has a test file that runs its cases", () => {
  const kinds = [...everyDriver, ...missingBackends].map(({ name }) => kindOf(name));
  expect(["memory", "jsonl", "sqlite", "postgres", "redis"]).toEqual(expect.arrayContaining(kinds));
});

testStores(["memory", "jsonl", "sqlite"]);
