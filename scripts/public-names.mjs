import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { root } from "./run.mjs";

/**
 * A name that the package exports.
 * @typedef {object} PublicName
 * @property {string} subpath the entry point, such as "skein/session"
 * @property {string} name
 * @property {"class" | "const" | "function" | "interface" | "type"} kind
 * @property {string} doc the comment above its declaration, without the stars; empty without one
 * @property {string} example the code after `@example` in the comment; empty without one
 * @property {string} source the file that declares it, such as "src/session/entry.ts"
 */

/**
 * @typedef {Extract<ReturnType<typeof parseAst>["body"][number], { type: "ExportNamedDeclaration" }>} NamedExport
 * @typedef {NamedExport["specifiers"][number]} Specifier
 */

/**
 * Every name that the package exports, in the order of package.json and of its entry points. Read from the sources, so
 * neither a build nor a compiler is needed.
 * @returns {PublicName[]}
 */
export function publicNames() {
  /** @type {Map<string, Map<string, Omit<PublicName, "subpath">>>} */
  const read = new Map();
  return doors().flatMap(({ subpath, source }) =>
    [...exportsOf(source, read)].map(([name, found]) => ({ subpath, ...found, name })),
  );
}

/** @returns {{ subpath: string, source: string }[]} */
function doors() {
  /** @type {{ name: string, exports: Record<string, { default: string }> }} */
  const { name, exports } = JSON.parse(readFileSync(posix.join(root, "package.json"), "utf8"));
  return Object.entries(exports).map(([path, target]) => ({
    subpath: posix.join(name, path),
    source: target.default.replace(/^\.\/dist\/(.*)\.js$/, "src/$1.ts"),
  }));
}

/**
 * @param {string} source
 * @param {Map<string, Map<string, Omit<PublicName, "subpath">>>} read the names of the files that were already read
 */
function exportsOf(source, read) {
  const known = read.get(source);
  if (known) return known;
  /** @type {Map<string, Omit<PublicName, "subpath">>} */
  const found = new Map();
  read.set(source, found);
  const text = readFileSync(posix.join(root, source), "utf8");
  for (const statement of parseAst(text, { lang: "ts" }).body) {
    if (statement.type === "ExportAllDeclaration" && statement.exported === null) {
      for (const [name, one] of exportsOf(target(source, statement.source), read)) found.set(name, one);
    } else if (statement.type === "ExportNamedDeclaration" && statement.declaration) {
      const { name, kind } = declared(statement.declaration, source);
      // The overloads of a function are one name; the first one has the comment.
      if (!found.has(name)) found.set(name, { name, kind, ...docAbove(text, statement.start), source });
    } else if (statement.type === "ExportNamedDeclaration" && statement.source) {
      const others = exportsOf(target(source, statement.source), read);
      for (const { local, exported } of statement.specifiers) {
        const one = others.get(nameOf(local));
        if (!one) throw new Error(`${source} exports ${nameOf(local)}, which ${statement.source.value} does not.`);
        found.set(nameOf(exported), one);
      }
    } else if (statement.type.startsWith("Export")) {
      throw new Error(`${source} exports something in a way that scripts/public-names.mjs does not read.`);
    }
  }
  return found;
}

/** @type {(source: string, specifier: { value: string }) => string} */
function target(source, specifier) {
  return posix.join(posix.dirname(source), specifier.value);
}

/** @type {(node: Specifier["local"]) => string} */
function nameOf(node) {
  return node.type === "Literal" ? node.value : node.name;
}

/**
 * @param {NonNullable<NamedExport["declaration"]>} declaration
 * @param {string} source
 * @returns {{ name: string, kind: PublicName["kind"] }}
 */
function declared(declaration, source) {
  switch (declaration.type) {
    case "VariableDeclaration": {
      const [{ id }] = /** @type {[{ id: { name: string } }]} */ (/** @type {unknown} */ (declaration.declarations));
      return { name: id.name, kind: "const" };
    }
    case "FunctionDeclaration":
    case "TSDeclareFunction":
      return { name: declaration.id?.name ?? "", kind: "function" };
    case "ClassDeclaration":
      return { name: declaration.id?.name ?? "", kind: "class" };
    case "TSInterfaceDeclaration":
      return { name: declaration.id.name, kind: "interface" };
    case "TSTypeAliasDeclaration":
      return { name: declaration.id.name, kind: "type" };
    default:
      throw new Error(`${source} exports a ${declaration.type}, which scripts/public-names.mjs does not know.`);
  }
}

/** @type {(text: string, start: number) => { doc: string, example: string }} */
function docAbove(text, start) {
  const comment = /\/\*\*(?<doc>(?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(text.slice(0, start))?.groups?.["doc"] ?? "";
  const doc = comment.replace(/^\s*\* ?/gm, "").trim();
  return { doc, example: /^@example\n(?<code>[\s\S]*?)(?=\n@|$(?![\s\S]))/m.exec(doc)?.groups?.["code"]?.trim() ?? "" };
}
