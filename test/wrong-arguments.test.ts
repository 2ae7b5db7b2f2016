import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { publicNames } from "../scripts/public-names.mjs";
import { ensureBuild } from "../scripts/setup.mjs";
import { removeAll } from "./remove-tree.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const run = promisify(execFile);

/** Functions that only a framework or other code of the package calls. */
const notForCallers = new Set([
  // Made by the middleware, Nest or createClient; a caller gets them, and does not make them.
  ...["RequestSession", "SessionHealthIndicator", "SessionMiddleware", "SessionModule"],
  ...["Client", "CheckpointsClient", "RunsClient", "SessionsClient", "UsersClient"],
  // The steps of a store's engine, called for every entry: the store that calls them has checked everything.
  ...[
    "planAppend",
    "planFirst",
    "planLater",
    "planNow",
    "KnownLog",
    "emptyHead",
    "inheritedCount",
    "stepHead",
    "stepPath",
  ],
  ...[
    "forkedHeader",
    "readSettings",
    "settingsFrom",
    "isOpen",
    "runAsync",
    "runSync",
    "runsKindOf",
    "runsColumns",
    "segmentsAfter",
  ],
  ...["RowDriver", "RowReader", "SessionCache", "ProcessLeases", "ScannedListing"],
  // Called by a test runner with a case and its subject.
  ...["skipReason", "modelSkipReason", "sandboxSkipReason"],
]);

test("every public function answers missing and wrong arguments with a result or one of our errors, and writes nothing", async () => {
  await ensureBuild();
  const names = publicNames()
    .filter(({ kind, name }) => (kind === "function" || kind === "class") && !notForCallers.has(name))
    .filter(({ name, source, kind }) => kind !== "class" || isMadeByCallers(name, source))
    .map(({ subpath, name, kind }) => ({ subpath, name, kind }));
  expect(names.length).toBeGreaterThan(120);
  const directory = await mkdtemp(join(tmpdir(), "skein-calls-"));
  try {
    const work = join(directory, "work");
    await mkdir(work);
    const report = join(directory, "report.json");
    const program = join(root, "test/programs/call-everything.mjs");
    await run(process.execPath, [program, JSON.stringify(names), report], {
      cwd: work,
      env: { ...process.env, SKEIN_HOME: join(directory, "home"), SKEIN_STORE: "", HOME: join(directory, "user") },
    });
    expect(JSON.parse(await readFile(report, "utf8"))).toEqual([]);
    expect(await readdir(work)).toEqual([]);
  } finally {
    await removeAll(directory);
  }
});

/** Errors are thrown and not made by callers; neither is a class whose constructor is private. */
function isMadeByCallers(name: string, source: string): boolean {
  const text = readFileSync(join(root, source), "utf8");
  const declared = text.slice(text.search(new RegExp(`class ${name}\\b`)));
  const body = declared.slice(0, declared.search(/^\}/m));
  return !/^class \w+(?:<[^{]*>)? extends \w*Error\b/.test(body) && !body.includes("private constructor(");
}
