import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ensureBuild } from "../scripts/setup.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = await readJson("package.json");
const subpaths = Object.keys(manifest.exports).map((subpath) => subpath.replace(/^\./, "skein"));

let consumer: string;
let packed: { filename: string; files: { path: string }[] };

// The package as a user gets it: packed, then installed where neither its peers nor its development tools are.
beforeAll(async () => {
  await ensureBuild();
  consumer = await mkdtemp(join(tmpdir(), "skein-consumer-"));
  const npm = (...args: string[]) => execute("npm", [...args, "--ignore-scripts", "--offline"]);
  [packed] = JSON.parse(await npm("pack", "--json", "--pack-destination", consumer));
  await writeFile(join(consumer, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  await npm("install", "--prefix", consumer, "--no-audit", "--no-fund", join(consumer, packed.filename));
});

afterAll(async () => {
  await rm(consumer, { recursive: true, force: true });
});

test("ships the build, the license, the readme and nothing else", () => {
  const paths = packed.files.map(({ path }) => path);
  const wanted = /^(?:dist\/.+\.(?:js|d\.ts)|LICENSE|README\.md|package\.json)$/;
  const studio = /^dist\/studio\/(?:index\.html|icon\.svg|assets\/[\w-]+\.(?:js|css))$/;
  expect(paths.filter((path) => !wanted.test(path) && !studio.test(path))).toEqual([]);
  expect(paths).toContain("dist/studio/index.html");
  expect(paths.filter((path) => path.includes(".test."))).toEqual([]);
  expect(paths).toContain("LICENSE");
});

// These are written in a framework, and whoever imports them has it. What skein/hono takes of its own are types.
const framework = { "skein/nest": "@nestjs/common", "skein/hono": "hono" };
const withoutFramework = subpaths.filter((subpath) => !Object.hasOwn(framework, subpath));

test("skein/nest, which only a Nest application needs, names what is missing elsewhere", async () => {
  const imported = execute(process.execPath, ["--input-type=module", "-e", 'import "skein/nest";'], consumer);
  await expect(imported).rejects.toThrow(/Cannot find package '@nestjs\/common'/);
});

test.for([...withoutFramework, "skein/hono"])(
  "%s can be imported where no optional peer is installed",
  async (subpath) => {
    const program = `import * as all from "${subpath}"; console.log(Object.keys(all).length > 0);`;
    const printed = await execute(process.execPath, ["--input-type=module", "-e", program], consumer);
    expect(printed.trim()).toBe("true");
  },
);

test("its types compile for a user who checks declarations and has no optional peer", async () => {
  const imports = withoutFramework.map((subpath, index) => `export * as part${index} from "${subpath}";`);
  await writeFile(join(consumer, "program.ts"), imports.join("\n"));
  const options = {
    module: "nodenext",
    target: "es2022",
    lib: ["es2023", "esnext.disposable"],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
  };
  await writeFile(join(consumer, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["program.ts"] }));
  const compiled = execute(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", consumer]);
  await expect(compiled).resolves.toBe("");
});

test("needs nothing at run time, and every peer is optional", () => {
  expect(manifest.dependencies ?? {}).toEqual({});
  const optional = Object.entries(manifest.peerDependenciesMeta).filter(([, meta]) => (meta as Peer).optional);
  expect(optional.map(([name]) => name).sort()).toEqual(Object.keys(manifest.peerDependencies).sort());
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

interface Peer {
  readonly optional?: boolean;
}

interface Locked {
  readonly resolved?: string;
}

async function readJson(path: string) {
  return JSON.parse(await readFile(join(root, path), "utf8"));
}

/** Resolves to what the program printed; a failure carries all of its output. */
async function execute(command: string, args: string[], cwd: string = root): Promise<string> {
  const shell = process.platform === "win32" && command === "npm";
  try {
    return (await promisify(execFile)(command, args, { cwd, shell, maxBuffer: 64 * 1024 * 1024 })).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} ${args[0]} failed:\n${stdout}${stderr}`, { cause: error });
  }
}
