import { readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { build } from "rolldown";
import { dts } from "rolldown-plugin-dts";

/**
 * Bundles the sources of a package into few large modules, all in one build, so that each error class exists only once,
 * whichever entry point it is imported from. Modules loaded with `import()` stay separate.
 * @param {string} folder contains package.json, which names the entry points, and src
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
    // Stores are disposable; a program for browsers may not have this library in its tsconfig.
    '/// <reference lib="esnext.disposable" />',
  );
}

/**
 * Bundles TypeScript sources into modules for Node; packages are not bundled.
 * @param {string} dir
 * @param {import("rolldown").InputOptions} options
 * @param {string} banner the first lines of every module
 */
export async function bundle(dir, options, banner = "") {
  await build({
    ...options,
    // The helpers that the compiler inserts for `using` are bundled, as their package is not installed with Skein.
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
      // Chunks have the same depth as the sources of the command line, which finds package.json and the studio relative
      // to itself.
      chunkFileNames: "chunks/[name].js",
      codeSplitting: {
        groups: [
          // Separate, so that a browser does not load the rest of the package.
          { name: "client", test: /src.http.client.index\.ts$/, priority: 2 },
          { name: "ui", test: /src.http.ui.index\.ts$/, priority: 2 },
          // Separate, so that `skein` without a command does not load the core to say where the default store is.
          { name: "home", test: /src.tree.home\.ts$|usingCtx/, priority: 1.5 },
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
