import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { isolatedDeclarationSync } from "rolldown/experimental";
import { parseAst } from "rolldown/parseAst";
import { publicNames } from "../scripts/public-names.mjs";
import { root } from "../scripts/run.mjs";

/** @typedef {import("../scripts/public-names.mjs").PublicName} PublicName */
/** @typedef {import("./pages.mjs").Page} Page */

const groups = /** @type {const} */ ([
  ["Functions", ["function"]],
  ["Classes", ["class"]],
  ["Constants", ["const"]],
  ["Types", ["interface", "type"]],
]);

/**
 * One page for each subpath of the package, with every name that it exports: its description, its declaration, and the
 * names that the declaration mentions.
 * @returns {Page[]}
 */
export function apiPages() {
  const names = publicNames();
  const signatureOf = createSignatures();
  // A name that several subpaths export is linked to the first of them.
  const homes = new Map(names.map(({ name, subpath }) => /** @type {const} */ ([name, subpath])).reverse());
  return [...new Set(names.map(({ subpath }) => subpath))].map((subpath) => {
    const here = names
      .filter((each) => each.subpath === subpath)
      .sort((one, other) => one.name.localeCompare(other.name, "en"));
    const sections = groups.flatMap(([title, kinds]) => {
      const members = here.filter(({ kind }) => kinds.some((each) => each === kind));
      if (members.length === 0) return [];
      return [`## ${title}`, ...members.map((each) => sectionOf(each, signatureOf(each), homes))];
    });
    return { path: apiPath(subpath), text: [`# ${subpath}`, ...sections].join("\n\n") + "\n" };
  });
}

/** @param {string} subpath such as "skein/session" */
export function apiPath(subpath) {
  return `api/${subpath}.md`;
}

/** @type {(each: PublicName, signature: string, homes: ReadonlyMap<string, string>) => string} */
function sectionOf({ name, subpath, doc }, signature, homes) {
  const related = [...new Set(signature.match(/\b[A-Za-z]\w+\b/g))].flatMap((word) => {
    const home = word === name ? undefined : homes.get(word);
    if (home === undefined) return [];
    const page = posix.relative(posix.dirname(apiPath(subpath)), apiPath(home));
    return [`[\`${word}\`](${home === subpath ? "" : page}#${word})`];
  });
  const see = related.length === 0 ? [] : [`See ${related.join(", ")}.`];
  const [prose, ...tags] = textOfDoc(doc);
  return [`### ${name} {#${name}}`, prose, codeOf(signature), ...tags, ...see].join("\n\n");
}

/**
 * The paragraphs of a doc comment; its tags become sentences.
 * @param {string} doc
 */
function textOfDoc(doc) {
  const [prose = "", ...tags] = doc.split(/(?:^|\s)@(?=(?:throws|returns|param|example)\b)/).map((part) => part.trim());
  const told = tags.map((tag) => {
    const {
      name = "",
      type,
      text = "",
    } = /^(?<name>\w+)(?: \{(?<type>[^}]+)\})?\s*(?<text>[\s\S]*)$/.exec(tag)?.groups ?? {};
    if (name === "example") return text.includes("```") ? text : codeOf(text);
    return `**${name.charAt(0).toUpperCase()}${name.slice(1)}** ${type === undefined ? "" : `\`${type}\`: `}${text}`;
  });
  return [prose, ...told];
}

/** @param {string} text */
function codeOf(text) {
  return `\`\`\`ts\n${text}\n\`\`\``;
}

/** @returns {(wanted: PublicName) => string} returns the declaration of a name, without `export` and private parts */
function createSignatures() {
  /** @type {Map<string, Map<string, string>>} */
  const known = new Map();
  return ({ name, source }) => {
    const declared = known.get(source) ?? declarationsOf(source);
    known.set(source, declared);
    const signature = declared.get(name);
    if (signature === undefined) throw new Error(`${source} declares no ${name}.`);
    return signature;
  };
}

/**
 * The declarations that a source exports, by name; the overloads of a function are joined.
 * @param {string} source
 */
function declarationsOf(source) {
  const { code } = isolatedDeclarationSync(source, readFileSync(join(root, source), "utf8"));
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const statement of parseAst(code, { lang: "dts" }).body) {
    if (statement.type !== "ExportNamedDeclaration" || !statement.declaration) continue;
    const text = code
      .slice(statement.start, statement.end)
      .replace(/^export (?:declare )?/, "")
      .replace(/^\t(?:#private|(?:private|protected) [^\n]*);\n/gm, "")
      .replaceAll("\t", "  ")
      // Aligns the stars of a comment below its first one.
      .replace(/^( *)\*(?=[ /])/gm, "$1 *");
    const name = /^(?:abstract )?\w+\*? (\w+)/.exec(text)?.[1] ?? "";
    found.set(name, found.has(name) ? `${found.get(name)}\n${text}` : text);
  }
  return found;
}
