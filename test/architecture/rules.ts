import { posix } from "node:path";
import { importsOf, type Import } from "./imports.ts";
import { readSourceText } from "./source-text.ts";

/** A file by its path from the project root, with forward slashes. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

export interface Architecture {
  /** For each folder of src/, the other folders it may import from. */
  readonly mayImport: Readonly<Record<string, readonly string[]>>;
  /** For each driver module, the folder in which one file may load it. */
  readonly drivers: Readonly<Record<string, string>>;
  /** For each package that a part is written in, the folders that may import it at load time. */
  readonly frameworks: Readonly<Record<string, readonly string[]>>;
  /** For each file that may import a module by a computed name, which modules those are. */
  readonly loads: Readonly<Record<string, string>>;
  /** A folder that runs on any runtime that has these modules of Node. */
  readonly portable: { readonly folder: string; readonly nodeModules: readonly string[] };
  /** For each file or folder that may read the environment, what it reads there. */
  readonly readsEnv: Readonly<Record<string, string>>;
  readonly readsArgv: Readonly<Record<string, string>>;
}

/** Checks the files of src/ that are shipped; each result is a sentence that names the file and the offence. */
export function checkFolders(files: readonly SourceFile[], { mayImport }: Architecture): string[] {
  return files.flatMap(({ path, text }) => {
    const folder = folderOf(path);
    const allowed = mayImport[folder];
    if (allowed === undefined) return [`${path} is in ${folder}, a folder that the table does not know.`];
    return relativeImports(path, text).flatMap(({ specifier, target }) => {
      if (!target.startsWith("src/")) return [`${path} imports ${specifier}, which is outside of src.`];
      const to = folderOf(target);
      if (to === folder || allowed.includes(to)) return [];
      return [`${path} imports ${specifier}, but ${folder} may not import ${to}.`];
    });
  });
}

export function checkFolderCycles(files: readonly SourceFile[]): string[] {
  const graph: Record<string, string[]> = {};
  for (const { path, text } of files) {
    const folder = folderOf(path);
    const targets = relativeImports(path, text).map(({ target }) => folderOf(target));
    graph[folder] = [...new Set([...(graph[folder] ?? []), ...targets.filter((target) => target !== folder)])];
  }
  return findCycles(graph);
}

/** The cycles of a graph, one sentence for each node that a search comes back to. */
export function findCycles(graph: Readonly<Record<string, readonly string[]>>): string[] {
  const found: string[] = [];
  const finished = new Set<string>();
  const visit = (node: string, trail: readonly string[]): void => {
    if (trail.includes(node)) {
      found.push(`Folders import each other: ${[...trail.slice(trail.indexOf(node)), node].join(" → ")}.`);
    } else if (!finished.has(node)) {
      for (const next of graph[node] ?? []) visit(next, [...trail, node]);
      finished.add(node);
    }
  };
  for (const node of Object.keys(graph)) visit(node, []);
  return found;
}

/** Each driver is loaded lazily, in one file, in its own folder; no other package is imported at all. */
export function checkDrivers(files: readonly SourceFile[], { drivers, frameworks, loads }: Architecture): string[] {
  const found: string[] = [];
  const placeOf = new Map<string, string>();
  for (const { path, text } of files) {
    for (const { specifier, kind } of importsOf(text)) {
      if (specifier === null && !Object.hasOwn(loads, path)) {
        found.push(`${path} computes the name of a module it imports.`);
      }
      const driver = specifier === null ? null : driverOf(specifier, drivers);
      if (driver === null || Object.hasOwn(frameworks, driver)) continue;
      const folder = drivers[driver];
      const first = placeOf.get(driver) ?? path;
      placeOf.set(driver, first);
      if (folder === undefined) found.push(`${path} imports ${driver}, a package that the table does not know.`);
      else if (!path.startsWith(folder)) found.push(`${path} imports ${driver}, which belongs in ${folder}.`);
      else if (first !== path) found.push(`${path} imports ${driver}, which ${first} imports already.`);
      else if (kind === "value") found.push(`${path} imports ${driver} at load time; use await import().`);
    }
  }
  return found;
}

/**
 * A framework is imported only in the folders written for it. Users of other folders need not have it: other code loads
 * it lazily.
 */
export function checkFrameworks(files: readonly SourceFile[], { frameworks }: Architecture): string[] {
  const folders = [...new Set(Object.values(frameworks).flat())];
  return files.flatMap(({ path, text }) => {
    const home = folders.find((folder) => path.startsWith(folder));
    const foreign = importsOf(text).flatMap(({ specifier }) => {
      const name = specifier === null ? null : driverOf(specifier, {});
      if (name === null || !Object.hasOwn(frameworks, name)) return [];
      const places = frameworks[name] ?? [];
      if (places.some((folder) => path.startsWith(folder))) return [];
      return [`${path} imports ${name}, which belongs in ${places.join(" or ")}.`];
    });
    const eager = relativeImports(path, text).flatMap(({ specifier, target, kind }) => {
      const folder = folders.find((candidate) => target.startsWith(candidate));
      if (kind !== "value" || folder === undefined || folder === home) return [];
      return [`${path} imports ${specifier} at load time; use await import().`];
    });
    return [...foreign, ...eager];
  });
}

/** The portable folder and its imports use no module of Node but the listed ones. */
export function checkPortable(files: readonly SourceFile[], { portable }: Architecture): string[] {
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  const own = [...texts.keys()].filter((path) => folderOf(path) === portable.folder);
  const reached = new Map(own.map((path) => [path, path]));
  const found: string[] = [];
  for (const [path, trail] of reached) {
    const text = texts.get(path) ?? "";
    for (const { specifier, kind } of importsOf(text)) {
      if (!specifier?.startsWith("node:") || portable.nodeModules.includes(specifier)) continue;
      if (kind === "type" && folderOf(path) !== portable.folder) continue;
      found.push(`${trail} imports ${specifier}, which ${portable.folder} must run without.`);
    }
    for (const { target, kind } of relativeImports(path, text)) {
      if (kind !== "type" && texts.has(target) && !reached.has(target)) reached.set(target, `${trail} → ${target}`);
    }
  }
  return found;
}

/** The environment and the command line are read in the listed places only. */
export function checkWorldReads(files: readonly SourceFile[], { readsEnv, readsArgv }: Architecture): string[] {
  const check = (word: string, places: readonly string[]): string[] =>
    files
      .filter(({ path }) => !places.some((place) => path === place || (place.endsWith("/") && path.startsWith(place))))
      .filter(({ text }) => readsProcess(text, word))
      .map(({ path }) => `${path} reads process.${word}, which has its own places.`);
  return [...check("env", Object.keys(readsEnv)), ...check("argv", Object.keys(readsArgv))];
}

export function checkDefaultExports(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ text }) => /(?<![\w$.])export\s*(?:default\b|\{[^}]*\bas\s+default\b)/.test(readSourceText(text).code))
    .map(({ path }) => `${path} has a default export.`);
}

/** Relative imports name files as they are on disk. `.mjs` and `.json` exist outside src only. */
export function checkImportEndings(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const endings = path.startsWith("src/") ? [".ts"] : [".ts", ".mjs", ".json"];
    return relativeImports(path, text)
      .filter(({ specifier }) => !endings.some((ending) => specifier.endsWith(ending)))
      .map(({ specifier }) => `${path} imports ${specifier}, which does not end in ${endings.join(" or ")}.`);
  });
}

/** Names are kebab-case and describe their contents. */
export function checkNames(files: readonly SourceFile[]): string[] {
  const empty = /^(?:utils?|helpers?|common|base|impl)$/;
  return files.flatMap(({ path }) => {
    const names = path.replace(/(?:\.test|\.d)?\.ts$/, "").split("/");
    if (!names.every((name) => /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name))) return [`${path} is not kebab-case.`];
    const word = names.flatMap((name) => name.split("-")).find((part) => empty.test(part));
    return word === undefined ? [] : [`${path} is named "${word}", which says nothing.`];
  });
}

/** Every file that package.json exports is compiled from a source on disk. */
export function checkExports(exports: unknown, files: readonly SourceFile[]): string[] {
  const sources = new Set(files.map(({ path }) => path));
  return Object.entries(exports as Record<string, Record<string, string>>).flatMap(([subpath, targets]) =>
    Object.values(targets)
      .map((target) => ({ target, source: target.replace(/^\.\/dist\/(.*?)(?:\.d\.ts|\.js)$/, "src/$1.ts") }))
      .filter(({ source }) => !sources.has(source))
      .map(({ target, source }) => `package.json exports ${subpath} as ${target}, but there is no ${source}.`),
  );
}

/** `src/session/log/entry.ts` is in `session`; a file of src/ itself is its own folder: `src/index.ts` is `index`. */
function folderOf(path: string): string {
  return (path.split("/")[1] ?? "").replace(/\.ts$/, "");
}

function relativeImports(path: string, text: string): { specifier: string; target: string; kind: Import["kind"] }[] {
  return importsOf(text).flatMap(({ specifier, kind }) =>
    specifier?.startsWith(".") ? [{ specifier, kind, target: posix.join(posix.dirname(path), specifier) }] : [],
  );
}

function driverOf(specifier: string, drivers: Architecture["drivers"]): string | null {
  if (specifier.startsWith(".")) return null;
  if (specifier.startsWith("node:")) return specifier in drivers ? specifier : null;
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

function readsProcess(text: string, word: string): boolean {
  const { code, strings } = readSourceText(text);
  const property = new RegExp(`\\bprocess\\s*(?:\\?\\.|\\.)\\s*${word}\\b`);
  const takenApart = new RegExp(`\\{[^{}]*\\b${word}\\b[^{}]*\\}\\s*=\\s*(?:globalThis\\s*\\.\\s*)?process\\b`);
  if (property.test(code) || takenApart.test(code)) return true;
  const keys = [...code.matchAll(/\bprocess\s*(?:\?\.)?\s*\[\s*"(\d+)"/g)].map(([, index]) => strings[Number(index)]);
  // A name for `process` would hide every later read, so its module counts as one.
  return keys.includes(word) || importsOf(text).some(({ specifier }) => /^(?:node:)?process$/.test(specifier ?? ""));
}
