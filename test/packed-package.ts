import { execFile } from "node:child_process";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { root } from "../scripts/run.mjs";
import { ensureBuild } from "../scripts/setup.mjs";

/** The package as npm packs it. */
export interface PackedPackage {
  readonly path: string;
  readonly files: readonly { readonly path: string }[];
}

/** Packs the package into a folder. */
export async function packPackage(folder: string): Promise<PackedPackage> {
  await ensureBuild();
  const pack = ["pack", "--json", "--ignore-scripts", "--offline", "--pack-destination", folder];
  const [packed] = JSON.parse(await execute("npm", pack)) as [{ filename: string; files: { path: string }[] }];
  return { path: join(folder, packed.filename), files: packed.files };
}

/**
 * Unpacks the package with only its dependencies and the requested packages beside it. That npm installs it like this
 * is tested by `npm run check -- --install`. Resolves to its location.
 */
export async function unpackPackage(
  { path }: PackedPackage,
  consumer: string,
  packages: readonly string[] = [],
): Promise<string> {
  const installed = join(consumer, "node_modules/skein");
  await mkdir(installed, { recursive: true });
  await execute("tar", ["-xzf", path, "--strip-components=1", "-C", installed]);
  const { dependencies, optionalDependencies } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
    dependencies: object;
    optionalDependencies: object;
  };
  for (const name of new Set([...Object.keys({ ...dependencies, ...optionalDependencies }), ...packages])) {
    await mkdir(dirname(join(consumer, "node_modules", name)), { recursive: true });
    await symlink(join(root, "node_modules", name), join(consumer, "node_modules", name), "junction");
  }
  return installed;
}

/** Resolves to the program's output; a failure carries all of its output. */
export async function execute(command: string, args: string[], cwd: string = root): Promise<string> {
  const shell = process.platform === "win32" && command === "npm";
  try {
    return (await promisify(execFile)(command, args, { cwd, shell, maxBuffer: 64 * 1024 * 1024 })).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} ${args[0]} failed:\n${stdout}${stderr}`, { cause: error });
  }
}
