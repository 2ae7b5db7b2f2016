import { readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { build } from "rolldown";
import { dts } from "rolldown-plugin-dts";

/**
 * Makes few, large modules of the sources of a package, all of them in one build: so there is one class for each error,
 * whichever door it comes through. What is imported with `import()` stays in modules of its own.
 * @param {string} folder holds package.json, which names the doors, and src
 * @param {string} out
 */
export async function bundlePackage(folder, out) {
  const { exports, bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  /** @type {readonly { default: string }[]} */
  const targets = Object.values(exports);
  const doors = sourcesOf(
    folder,
    targets.map((target) => target.default),
  );
  const programs = sourcesOf(folder, [
    ...Object.values(bin),
    "./dist/cli/tour.js",
    "./dist/interop/formats/import-thread.js",
  ]);
  await bundle(out, { input: { ...doors, ...programs }, treeshake: false });
  await bundle(
    out,
    { input: doors, plugins: [dts({ cwd: folder, oxc: true, emitDtsOnly: true, tsconfig: false })] },
    // A store can be disposed of, which the library of a browser program need not know.
    '/// <reference lib="esnext.disposable" />',
  );
}

/**
 * Makes modules for Node of TypeScript sources; packages stay outside.
 * @param {string} dir
 * @param {import("rolldown").InputOptions} options
 * @param {string} banner what every module begins with
 */
export async function bundle(dir, options, banner = "") {
  await build({
    ...options,
    // What the compiler needs for `using` is not a package that is installed with Skein.
    external: (id) => !id.startsWith(".") && !isAbsolute(id) && !id.startsWith("@oxc-project/"),
    platform: "neutral",
    transform: { target: "es2022" },
    tsconfig: false,
    logLevel: "warn",
    checks: { pluginTimings: false },
    output: {
      dir,
      banner,
      entryFileNames: "[name].js",
      // As deep as the sources of the command line are: it finds package.json and the studio from where it stands.
      chunkFileNames: "chunks/[name].js",
      codeSplitting: {
        groups: [
          // A browser must not load the rest of the package with it.
          { name: "client", test: /src.http.client.index\.ts$/, priority: 2 },
          { name: "ui", test: /src.http.ui.index\.ts$/, priority: 2 },
          { name: "core", test: /src.index\.ts$/, priority: 1 },
        ],
      },
    },
  });
}

/** @type {(folder: string, targets: readonly string[]) => Record<string, string>} */
function sourcesOf(folder, targets) {
  const names = targets.map((target) => target.replace(/^\.\/dist\/|\.js$/g, ""));
  return Object.fromEntries(names.map((name) => [name, join(folder, "src", `${name}.ts`)]));
}
