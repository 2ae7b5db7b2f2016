import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { publicNames } from "../scripts/public-names.mjs";
import { ensureBuild } from "../scripts/setup.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const names = publicNames();

/** The names that the adapter of a framework re-exports, so that its users import from one place. */
const handedOn: Readonly<Record<string, readonly string[]>> = {
  RequestSession: ["skein/hono", "skein/express", "skein/fastify", "skein/nest"],
  SessionMiddlewareOptions: ["skein/hono", "skein/express", "skein/fastify"],
  SessionContext: ["skein/nest"],
  SessionManager: ["skein/nest"],
};

/** Names that no document explains, each with the reason. */
const unexplained: Readonly<Record<string, string>> = {};

describe("the names of the package", () => {
  test("are at most 120 at the root", () => {
    const atRoot = names.filter(({ subpath }) => subpath === "skein");
    expect(atRoot.length).toBeGreaterThan(50);
    expect(atRoot.length).toBeLessThanOrEqual(120);
  });

  test("have one home each, except for re-exports of a framework's adapter", () => {
    const homes = new Map<string, string[]>();
    for (const { name, subpath } of names) {
      if (!handedOn[name]?.includes(subpath)) homes.set(name, [...(homes.get(name) ?? []), subpath]);
    }
    expect([...homes].filter(([, subpaths]) => subpaths.length !== 1)).toEqual([]);
  });

  test("each have a sentence that describes them", () => {
    const silent = names.filter(({ doc }) => !/^[A-Z`].*?[.:](?:\s|$)/s.test(doc));
    expect(silent.map(({ subpath, name }) => `${subpath}: ${name}`)).toEqual([]);
    const methods = read("src/tree/session-tree.ts").matchAll(
      /(?<=(?<above>.*)\n) {2}(?:static |async |get )*(?<name>[a-z]\w*)\(.*\{$/gm,
    );
    const wordless = [...methods].filter(({ groups }) => !/\*\/\s*$/.test(groups?.["above"] ?? ""));
    expect(wordless.map(({ groups }) => groups?.["name"])).toEqual([]);
  });

  test("each are in a document or an example, but for those with a reason", () => {
    // Only the code of documents counts: many names are also ordinary words of prose.
    const code = [...filesIn("docs", /\.md$/), "README.md"].flatMap((page) =>
      read(page).match(/```[\s\S]*?```|`[^`]+`/g),
    );
    const texts = [...code, ...filesIn("examples", /\.(?:ts|mjs)$/).map(read)];
    const explained = new Set(texts.join("\n").match(/\w+/g));
    const missing = names.filter(({ name }) => !explained.has(name) && unexplained[name] === undefined);
    expect(missing.map(({ subpath, name }) => `${subpath}: ${name}`)).toEqual([]);
    const known = new Set(names.map(({ name }) => name));
    expect(Object.keys(unexplained).filter((name) => explained.has(name) || !known.has(name))).toEqual([]);
  });

  test("come with an example where they are functions of the root", () => {
    const functions = names.filter(({ subpath, kind }) => subpath === "skein" && kind === "function");
    expect(functions.filter(({ name, example }) => !example.includes(`${name}(`)).map(({ name }) => name)).toEqual([]);
  });
});

describe("users of other systems", () => {
  const { exports } = JSON.parse(read("package.json")) as { exports: Record<string, { default: string }> };
  const built = new Map<string, Record<string, unknown>>();

  beforeAll(async () => {
    await ensureBuild();
    for (const [path, { default: file }] of Object.entries(exports)) {
      built.set(path.replace(/^\./, "skein"), await import(pathToFileURL(join(root, file)).href));
    }
  });

  test.for(["openrath", "lexigram", "operator"])("finds in the package what docs/from-%s.md names", (page) => {
    const rows = read(`docs/from-${page}.md`)
      .split("\n")
      .filter((line) => line.startsWith("| ") && !line.includes("| Skein |"))
      .map((line) => line.split("|").map((cell) => cell.trim()));
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.flatMap(([, , ours = "", from = ""]) => missingIn(ours, from))).toEqual([]);
  });

  /** The names in a row that the package does not have: names, and the members after their dots. */
  function missingIn(ours: string, from: string): string[] {
    const places = spansOf(from);
    const used = new Set<string>();
    let owner = "";
    const missing = spansOf(ours).filter((span) => {
      const [, name = "", member] = /^(\w*)(?:\.(\w+))?/.exec(span) ?? [];
      if (name !== "") owner = name;
      const home = names.find((one) => one.name === owner && places.includes(one.subpath));
      if (home === undefined) return true;
      used.add(home.subpath);
      const value = built.get(home.subpath)?.[owner];
      const isValue = !["interface", "type"].includes(home.kind);
      return (isValue && value === undefined) || (member !== undefined && !hasMember(value, home.source, member));
    });
    return [...missing, ...places.filter((place) => !used.has(place))];
  }
});

/** A method is looked for in the class that was built, a field or a member of an interface where it is declared. */
function hasMember(value: unknown, source: string, member: string): boolean {
  if (typeof value === "function" && (member in value || member in (value.prototype as object))) return true;
  return new RegExp(`^ {2}(?:readonly |get )?${member}\\b`, "m").test(read(source));
}

function filesIn(folder: string, kind: RegExp): string[] {
  const found = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  return found.filter((name) => kind.test(name) && !name.includes("node_modules")).map((name) => `${folder}/${name}`);
}

function spansOf(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, span]) => span as string);
}
