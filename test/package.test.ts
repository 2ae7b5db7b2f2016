import { existsSync } from "node:fs";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { publicNames } from "../scripts/public-names.mjs";
import { root } from "../scripts/run.mjs";
import { execute, type PackedPackage, packPackage, unpackPackage } from "./packed-package.ts";

const manifest = await readJson("package.json");
const subpaths = Object.keys(manifest.exports).map((subpath) => subpath.replace(/^\./, "skein"));

let consumer: string;
let installed: string;
let packed: PackedPackage;

beforeAll(async () => {
  consumer = await mkdtemp(join(tmpdir(), "skein-consumer-"));
  packed = await packPackage(consumer);
  await writeFile(join(consumer, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  installed = await unpackPackage(packed, consumer);
});

afterAll(async () => {
  await rm(consumer, { recursive: true, force: true });
});

test("ships the build, the guides, the examples and nothing else, in few files", () => {
  const paths = packed.files.map(({ path }) => path);
  expect(paths.length).toBeLessThan(400);
  const wanted =
    /^(?:dist\/.+\.(?:js|d\.ts)|docs\/.+\.(?:md|png|svg)|examples\/.+\.ts|examples\/fleet\/[\w.]+|LICENSE|[A-Z]+\.md|package\.json)$/;
  const studio = /^dist\/studio\/(?:index\.html|icon\.svg|assets\/[\w-]+\.(?:js|css))$/;
  expect(paths.filter((path) => !wanted.test(path) && !studio.test(path))).toEqual([]);
  expect(paths).toContain("dist/studio/index.html");
  expect(paths.filter((path) => path.includes(".test."))).toEqual([]);
  expect(paths).toContain("LICENSE");
  expect(paths).toContain("docs/guides/runs.md");
});

test("every shipped page links only to shipped files, and links on a registry's page resolve", async () => {
  expect(manifest.repository.url).toMatch(/^git\+https:\/\/.+\.git$/);
  const pages = packed.files.map(({ path }) => path).filter((path) => path.endsWith(".md"));
  const broken: string[] = [];
  for (const page of pages) {
    const prose = (await readFile(join(installed, page), "utf8")).replace(/```[\s\S]*?```|`[^`\n]*`/g, "");
    for (const [, target = ""] of prose.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)) {
      if (!existsSync(join(installed, dirname(page), target))) broken.push(`${page}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
});

test("the README's programs and the command line run where nothing else is installed", async () => {
  const readme = await readFile(join(installed, "README.md"), "utf8");
  const [first = "", log = "", ...others] = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = ""]) => code);
  expect(others).toEqual([]);
  await writeFile(join(consumer, "first.mjs"), first);
  await expect(execute(process.execPath, ["first.mjs"], consumer)).resolves.toContain("a.txt says: hello");
  await writeFile(join(consumer, "log.mjs"), log);
  await expect(execute(process.execPath, ["log.mjs"], consumer)).resolves.toContain("97 is a prime");
  const skein = [join(installed, "dist/cli/skein.js")];
  await expect(execute(process.execPath, skein, consumer)).resolves.toContain("Usage: skein <command>");
  // Both programs, and the command line, keep sessions in one place.
  const listed = await execute(process.execPath, [...skein, "list"], consumer);
  for (const name of ["write hello to a.txt", "Name a prime above 90."]) expect(listed).toContain(name);
  const names = await readdir(consumer, { recursive: true });
  expect(names.filter((name) => !name.startsWith("node_modules") && /\.db$|\.jsonl$|\.skein$/.test(name))).toEqual([]);
});

test("a bundler accepts all of it without the optional packages", async () => {
  const entry = join(consumer, "bundled.mjs");
  const imports = withoutFramework.map((subpath, index) => `export * as part${index} from "${subpath}";`);
  await writeFile(entry, imports.join("\n"));
  const out = join(consumer, "bundle");
  await rm(join(consumer, "node_modules/libsql"));
  await build({
    root: consumer,
    configFile: false,
    logLevel: "silent",
    ssr: { noExternal: true },
    build: { ssr: entry, outDir: out },
  });
  const printed = await execute(
    process.execPath,
    [
      "--input-type=module",
      "-e",
      `import { part0 } from ${JSON.stringify(pathToFileURL(join(out, "bundled.js")).href)};
     const store = await part0.openStore("memory:");
     const redis = await part0.openStore("redis://127.0.0.1:1").catch(({ code }) => code);
     console.log(redis, await part0.openStore("sqlite:./x.db").then((sqlite) => sqlite.close(), ({ code }) => code));`,
    ],
    consumer,
  );
  const hasDriver = process.getBuiltinModule?.("node:sqlite") !== undefined;
  expect(printed.trim()).toBe(`DRIVER_MISSING ${hasDriver ? undefined : "DRIVER_MISSING"}`);
});

test("the client is small in a browser, and its types need neither Node's nor a new library", async () => {
  const out = join(consumer, "client");
  const entry = join(consumer, "client.mjs");
  await writeFile(entry, 'export * from "skein/client";');
  const lib = { entry, formats: ["iife" as const], name: "skein", fileName: "client" };
  await build({ root: consumer, configFile: false, logLevel: "silent", build: { outDir: out, lib, minify: true } });
  const [file = "", ...others] = await readdir(out);
  expect(others).toEqual([]);
  expect((await readFile(join(out, file))).length).toBeLessThan(18_000);
  await writeFile(join(consumer, "client.ts"), 'export * from "skein/client";');
  const options = {
    lib: ["es2020", "dom"],
    target: "es2020",
    module: "esnext",
    moduleResolution: "bundler",
    types: [],
  };
  await expect(compile("client.ts", options)).resolves.toBe("");
});

// These are written in a framework that the importer has. The last three use only types of theirs.
const framework = {
  "skein/nest": "@nestjs/common",
  "skein/langgraph": "@langchain/langgraph-checkpoint",
  "skein/hono": "hono",
  "skein/openai-agents": "@openai/agents",
  "skein/ui": "ai",
};
const withoutFramework = subpaths.filter((subpath) => !Object.hasOwn(framework, subpath));

test.for(["skein/nest", "skein/langgraph"] as const)(
  "%s, which only an application of its framework needs, names the missing package elsewhere",
  async (subpath) => {
    const imported = execute(process.execPath, ["--input-type=module", "-e", `import "${subpath}";`], consumer);
    await expect(imported).rejects.toThrow(`Cannot find package '${framework[subpath]}'`);
  },
);

test.for([...withoutFramework, "skein/hono", "skein/openai-agents", "skein/ui"])(
  "%s can be imported where no optional peer is installed",
  async (subpath) => {
    const program = `import * as all from "${subpath}"; console.log(Object.keys(all).length > 0);`;
    const printed = await execute(process.execPath, ["--input-type=module", "-e", program], consumer);
    expect(printed.trim()).toBe("true");
  },
);

test("there is one class for each error, and those of another copy are known as its instances", async () => {
  await cp(installed, join(consumer, "node_modules/copy"), { recursive: true });
  const program = `
    import * as skein from "skein";
    import * as copy from "copy";
    import { openSqliteStore } from "skein/sqlite";
    const refused = await openSqliteStore({ path: "" }).catch((error) => error);
    const store = await copy.openStore("memory:");
    const unknown = await store.fork("unknown", copy.createHeader()).catch((error) => error);
    const classes = [skein.SessionError, skein.SessionNotFoundError, skein.SessionClosedError];
    console.log(refused.constructor === skein.SessionError, unknown.constructor === skein.SessionNotFoundError);
    console.log(classes.map((each) => unknown instanceof each).join(" "));`;
  const printed = await execute(process.execPath, ["--input-type=module", "-e", program], consumer);
  expect(printed).toBe("true false\ntrue true false\n");
});

test("its types compile for a user who checks declarations and has no optional peer, and so do its examples", async () => {
  const imports = withoutFramework.map((subpath, index) => `export * as part${index} from "${subpath}";`);
  await writeFile(join(consumer, "program.ts"), [...imports, ...shownInComments()].join("\n"));
  const options = {
    module: "nodenext",
    target: "es2022",
    lib: ["es2023", "esnext.disposable"],
    exactOptionalPropertyTypes: true,
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
  };
  await expect(compile("program.ts", options)).resolves.toBe("");
});

test("depends only on packages without dependencies, and on a single version of each", async () => {
  expect(Object.keys(manifest.dependencies)).toEqual(["@hono/node-server", "hono", "zod"]);
  expect(Object.keys(manifest.optionalDependencies)).toEqual(["libsql"]);
  for (const name of Object.keys(manifest.dependencies)) {
    expect((await readJson(`node_modules/${name}/package.json`)).dependencies ?? {}).toEqual({});
  }
  // npm refuses to install beside a version that a range leaves out, though the peer is optional.
  const peers = Object.entries<string>(manifest.peerDependencies);
  expect(peers.filter(([name, range]) => range !== "*" || !manifest.peerDependenciesMeta[name]?.optional)).toEqual([]);
});

test("development versions are exact, and the lock file installs from any registry", async () => {
  const ranges = Object.values<string>(manifest.devDependencies).filter(
    (version) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version),
  );
  expect(ranges).toEqual([]);
  const { packages } = await readJson("package-lock.json");
  const tied = Object.entries<Locked>(packages).filter(([, { resolved }]) => resolved?.startsWith("http"));
  expect(tied.map(([path]) => path)).toEqual([]);
});

test("the type check resolves every subpath to the source it is built from", async () => {
  const { compilerOptions } = await readJson("tsconfig.json");
  const sources = Object.values<{ default: string }>(manifest.exports).map(({ default: target }, index) => [
    subpaths[index],
    [target.replace("./dist/", "./src/").replace(/\.js$/, ".ts")],
  ]);
  expect(compilerOptions.paths).toEqual(Object.fromEntries(sources));
});

interface Locked {
  readonly resolved?: string;
}

/** The examples in the comments of the root's functions, as a program with the needed imports. */
function shownInComments(): string[] {
  const atRoot = publicNames().filter(({ subpath }) => subpath === "skein");
  const values = atRoot.filter(({ kind }) => kind === "class" || kind === "function");
  const shown = atRoot.filter(({ example }) => example !== "");
  expect(shown.length).toBeGreaterThan(10);
  return [
    `import { ${values.map(({ name }) => name).join(", ")} } from "skein";`,
    ...shown.map(({ name, example }) => `export async function show_${name}() {\n${example}\n}`),
  ];
}

/** Resolves to the compiler's output for a file of the consumer. */
async function compile(file: string, compilerOptions: object): Promise<string> {
  const options = { ...compilerOptions, strict: true, noEmit: true, skipLibCheck: false };
  await writeFile(join(consumer, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: [file] }));
  return execute(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", consumer]);
}

async function readJson(path: string) {
  return JSON.parse(await readFile(join(root, path), "utf8"));
}
