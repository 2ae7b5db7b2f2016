import { expect, test } from "vitest";
import { importsOf } from "./imports.ts";
import * as rules from "./rules.ts";
import { architecture } from "./table.ts";

type Files = Record<string, string>;
type Rule = (files: rules.SourceFile[]) => string[];

const folders: Rule = (files) => rules.checkFolders(files, architecture);
const drivers: Rule = (files) => rules.checkDrivers(files, architecture);
const frameworks: Rule = (files) => rules.checkFrameworks(files, architecture);
const portable: Rule = (files) => rules.checkPortable(files, architecture);
const worldReads: Rule = (files) => rules.checkWorldReads(files, architecture);
// biome-ignore format: a table reads best with one offence to a line.
const offences: [offence: string, rule: Rule, files: Files, said: string][] = [
  ["a lower folder imports a higher one", folders, { "src/session/a.ts": 'import { b } from "../stores/b.ts";' }, "session may not import stores"],
  ["a type crosses the wrong way", folders, { "src/session/a.ts": 'import type { B } from "../tree/b.ts";' }, "session may not import tree"],
  ["a re-export crosses the wrong way", folders, { "src/stores/a.ts": 'export * from "../agent/b.ts";' }, "stores may not import agent"],
  ["a lazy import crosses the wrong way", folders, { "src/stores/sqlite/a.ts": 'await import("../../agent/b.ts");' }, "stores may not import agent"],
  ["a sibling imports a sibling", folders, { "src/models/a.ts": 'import { b } from "../tools/b.ts";' }, "models may not import tools"],
  ["the front door opens on the cli", folders, { "src/index.ts": 'export { a } from "./cli/a.ts";' }, "index may not import cli"],
  ["the front door opens on the test cases", folders, { "src/index.ts": 'export { a } from "./testing/a.ts";' }, "index may not import testing"],
  ["a folder goes through the front door", folders, { "src/agent/a.ts": 'import { b } from "../index.ts";' }, "agent may not import index"],
  ["a folder has no row", folders, { "src/misc/a.ts": "" }, "misc, a folder that the table does not know"],
  ["a source imports from outside of src", folders, { "src/tree/a.ts": 'import "../../test/b.ts";' }, "outside of src"],
  ["two folders import each other", rules.checkFolderCycles, { "src/a/x.ts": 'import "../b/x.ts";', "src/b/y.ts": 'import "../a/y.ts";' }, "a → b → a"],
  ["three folders form a ring", rules.checkFolderCycles, { "src/a/x.ts": 'import "../b/x.ts";', "src/b/y.ts": 'import "../c/y.ts";', "src/c/z.ts": 'import "../a/x.ts";' }, "a → b → c → a"],
  ["an unknown package is imported", drivers, { "src/agent/a.ts": 'import type { Z } from "yup";' }, "yup, a package that the table does not know"],
  ["a scoped package is imported by a path inside it", drivers, { "src/agent/a.ts": 'await import("@scope/name/deep");' }, "@scope/name, a package"],
  ["a module of Node is imported without its prefix", drivers, { "src/tree/a.ts": 'import fs from "fs";' }, "fs, a package"],
  ["a driver is loaded in another folder", drivers, { "src/tree/a.ts": 'await import("libsql");' }, "belongs in src/stores/sqlite/"],
  ["node:sqlite is loaded in another folder", drivers, { "src/tree/a.ts": 'process.getBuiltinModule("node:sqlite");' }, "belongs in src/stores/sqlite/"],
  ["the core names a driver's type", drivers, { "src/session/a.ts": 'import type D from "libsql";' }, "belongs in src/stores/sqlite/"],
  ["a driver is loaded in a second file", drivers, { "src/agent/a.ts": 'await import("gpt-tokenizer");', "src/agent/b.ts": 'await import("gpt-tokenizer/model/x");' }, "which src/agent/a.ts imports already"],
  ["a driver is loaded at load time", drivers, { "src/stores/sqlite/a.ts": 'import Database from "libsql";' }, "at load time"],
  ["a driver is required", drivers, { "src/stores/sqlite/a.ts": 'const D = require("libsql");' }, "at load time"],
  ["a module's name is computed", drivers, { "src/stores/sqlite/a.ts": "await import(name);" }, "computes the name"],
  ["a module's name is put together", drivers, { "src/stores/sqlite/a.ts": "await import(`lib${x}`);" }, "computes the name"],
  ["a framework is imported elsewhere", frameworks, { "src/agent/a.ts": 'import type { Z } from "zod";' }, "zod, which belongs in src/http/server/"],
  ["what is written in a framework is loaded at load time", frameworks, { "src/http/index.ts": 'export { a } from "./server/a.ts";' }, "at load time"],
  ["the session folder uses Node", portable, { "src/session/a.ts": 'import { join } from "node:path";' }, "imports node:path, which session must run without"],
  ["the session folder uses Node through internal", portable, { "src/session/a.ts": 'import "../internal/b.ts";', "src/internal/b.ts": 'import "./c.ts";', "src/internal/c.ts": 'import "node:fs";' }, "src/session/a.ts → src/internal/b.ts → src/internal/c.ts imports node:fs"],
  ["the environment is read elsewhere", worldReads, { "src/agent/a.ts": "const key = process.env.KEY;" }, "reads process.env"],
  ["the environment is taken apart", worldReads, { "src/agent/a.ts": "const { platform, env } = process;" }, "reads process.env"],
  ["the environment is read by a key", worldReads, { "src/agent/a.ts": "process['env']" }, "reads process.env"],
  ["the environment is read inside a template", worldReads, { "src/agent/a.ts": "`a ${{ b: process.env.HOME }.b} c`" }, "reads process.env"],
  ["process gets another name", worldReads, { "src/agent/a.ts": 'import p from "node:process";' }, "reads process.env"],
  ["the command line is read outside of the cli", worldReads, { "src/tree/home.ts": "process.argv.slice(2)" }, "reads process.argv"],
  ["a file has a default export", rules.checkDefaultExports, { "src/agent/a.ts": "export default 1;" }, "has a default export"],
  ["a file renames an export to default", rules.checkDefaultExports, { "src/agent/a.ts": "export { a, b as default };" }, "has a default export"],
  ["a relative import has no ending", rules.checkImportEndings, { "src/agent/a.ts": 'import "./b";' }, "does not end in .ts"],
  ["a relative import names the output", rules.checkImportEndings, { "src/agent/a.ts": 'import "./b.js";' }, "does not end in .ts"],
  ["a file is called utils", rules.checkNames, { "src/agent/utils.ts": "" }, 'named "utils"'],
  ["a file is called something helpers", rules.checkNames, { "test/stores/string-helpers.ts": "" }, 'named "helpers"'],
  ["a folder is called common", rules.checkNames, { "src/common/a.ts": "" }, 'named "common"'],
  ["a file is in camel case", rules.checkNames, { "src/agent/sessionTree.ts": "" }, "is not kebab-case"],
  ["an export has no source", (files) => rules.checkExports({ "./a": { types: "./dist/a/index.d.ts" } }, files), { "src/a/other.ts": "" }, "there is no src/a/index.ts"],
];

test.for(offences)("reports that %s", ([, rule, files, said]) => {
  expect(rule(asFiles(files)).join("\n")).toContain(said);
});

test("reports nothing about files that keep every rule", () => {
  const files = asFiles({
    "src/index.ts": 'export { a } from "./agent/a.ts";\nexport type { S } from "./stores/sqlite/index.ts";',
    "src/internal/b.ts": 'import type { Stats } from "node:fs";',
    "src/internal/base64.ts": 'import { Buffer } from "node:buffer";',
    "src/session/a.ts": 'import { AsyncLocalStorage } from "node:async_hooks";\nimport { b } from "../internal/b.ts";',
    "src/stores/sqlite/index.ts": 'import type D from "libsql";\nconst { default: L } = await import("libsql");',
    "src/agent/a.ts": 'import { s } from "../session/a.ts";\nconst t = await import("gpt-tokenizer");',
    "src/tree/home.ts": "export const home = process.env.SKEIN_HOME;",
    "src/cli/tour.ts": 'import { a } from "../index.ts";\nconst [name] = process.argv.slice(2);',
  });
  const checks = [folders, drivers, portable, worldReads, rules.checkDefaultExports, rules.checkImportEndings];
  for (const check of [...checks, rules.checkFolderCycles, rules.checkNames]) expect(check(files)).toEqual([]);
  const exports = { ".": { types: "./dist/index.d.ts", default: "./dist/index.js" } };
  expect(rules.checkExports(exports, files)).toEqual([]);
});

test("finds every form of import", () => {
  const text = `
    import a from "1";
    import type { B } from '2';
    import type from "3";
    import * as c from "4"; import "5";
    import {
      d, // a comment between
      type E,
    } from "6";
    import f, { g } from "7";
    export { h } from "8";
    export type { I } from "9";
    export * as j from "10";
    const k = await import("11"), l = await import(\`12\`);
    type M = typeof import("13");
    const n = process.getBuiltinModule?.("14");
    import{o}from"15";
  `;
  const found = importsOf(text).map(({ specifier, kind }) => `${specifier} ${kind}`);
  const values = ["1", "3", "4", "5", "6", "7", "8", "10", "15"].map((name) => `${name} value`);
  const lazies = ["11", "12", "13", "14"].map((name) => `${name} lazy`);
  expect(found.sort()).toEqual([...values, "2 type", "9 type", ...lazies].sort());
});

test("is not fooled by comments, strings, templates and regular expressions", () => {
  const text = `#!/usr/bin/env node
    // import "a";
    /* import "b"; /* import("c") */
    const s = 'import "d";' + "\\" import(\\"e\\")";
    const t = \`import "f"; \${\`import("g") \${s}\`} export * from "h"\`;
    const r = s.replace(/["'\`/*]/g, "") / 2; const q = [/import "i"/, /[/"]/];
    const object = { import: "j", export: "k" }; object.import("l"); important("m");
    import real from "real";
  `;
  expect(importsOf(text)).toEqual([{ specifier: "real", kind: "value" }]);
});

function asFiles(files: Files): rules.SourceFile[] {
  return Object.entries(files).map(([path, text]) => ({ path, text }));
}
