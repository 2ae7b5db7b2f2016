import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { ensureBuild } from "../scripts/setup.mjs";
import { apiPath } from "../site/api-pages.mjs";
import { contentsOf, llmsText, pagesOf } from "../site/contents.mjs";
import { readOpenApi } from "../site/http-page.mjs";
import { type Page, siteImages, sitePages } from "../site/pages.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  exports: Record<string, { types: string }>;
};
let pages: readonly Page[];
let operations: readonly string[];

// The pages as `npm run docs` passes them to VitePress, which would take too long for a test.
beforeAll(async () => {
  await ensureBuild();
  const openApi = await readOpenApi();
  operations = Object.values(openApi.paths).flatMap((path) => Object.values(path).map((each) => each.operationId));
  pages = sitePages(openApi);
});

test.for(Object.entries(exports))("every name of %s has its place on a page", ([subpath, { types }]) => {
  const built = readFileSync(join(root, types), "utf8");
  const exported = [...built.matchAll(/^export \{([^}]*)\}/gm)].flatMap(([, list = ""]) => list.split(","));
  const names = exported.map((each) => /(\w+)\s*$/.exec(each)?.[1]);
  const { text } = pages.find(({ path }) => path === apiPath(posix.join("skein", subpath))) ?? { text: "" };
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name) => !text.includes(`\n### ${name} {#${name}}\n`))).toEqual([]);
});

test("the names of a page are sorted alphabetically within each kind", () => {
  for (const { path, text } of pages.filter((page) => page.path.startsWith("api/skein"))) {
    for (const group of withoutCode(text).split(/^## /m)) {
      const names = [...group.matchAll(/^### (\w+) /gm)].map(([, name = ""]) => name.toLowerCase());
      expect(names, path).toEqual(names.toSorted());
    }
  }
});

test("every route of the server has its place on a page", () => {
  const { text } = pages.find(({ path }) => path === "http.md") ?? { text: "" };
  expect(operations.length).toBeGreaterThan(50);
  expect(operations.filter((each) => !text.includes(` {#${each}}\n`))).toEqual([]);
});

test("every link resolves to a page and a heading, or a picture, of the site", () => {
  const anchors = new Map(pages.map(({ path, text }) => [path, anchorsOf(text)]));
  const files = new Set([...anchors.keys(), ...siteImages(), "openapi.json"]);
  const broken = pages.flatMap(({ path, text }) =>
    linksOf(text).flatMap(({ target, anchor }) => {
      const aimed = target === "" ? path : posix.join(target.startsWith("/") ? "" : dirname(path), target);
      const page = aimed.replace(/^\//, "").replace(/\/$/, "/index.md");
      const whole = files.has(page) && (anchor === undefined || anchors.get(page)?.has(anchor) === true);
      return whole ? [] : [`${path}: ${target}#${anchor ?? ""}`];
    }),
  );
  expect(broken).toEqual([]);
});

test("every page can be reached from the table of contents and is named to models", () => {
  const contents = contentsOf(pages);
  const listed = new Set(contents.flatMap(({ items }) => items.flatMap((item) => pagesOf(item, pages))));
  const missing = pages.filter((page) => !listed.has(page)).map(({ path }) => path);
  expect(missing.filter((path) => !path.endsWith("index.md"))).toEqual([]);
  const text = llmsText(contents, pages, "Keeps agent sessions.");
  expect(pages.filter((page) => listed.has(page) && !text.includes(`(/${page.path})`))).toEqual([]);
});

function linksOf(text: string): { target: string; anchor: string | undefined }[] {
  const prose = withoutCode(text).replace(/`[^`\n]*`/g, "");
  return [...prose.matchAll(/\]\((?!https?:)(?<target>[^)#\s]*)(?:#(?<anchor>[^)\s]+))?\)/g)].map(({ groups }) => ({
    target: groups?.target ?? "",
    anchor: groups?.anchor,
  }));
}

/** The valid link targets after the #: the explicit id of a heading, or its words. */
function anchorsOf(text: string): Set<string> {
  const headings = [...withoutCode(text).matchAll(/^#+ (?<words>.+?)(?: \{#(?<id>\w+)\})?$/gm)];
  return new Set(headings.map(({ groups }) => groups?.id ?? slugOf(groups?.words ?? "")));
}

function slugOf(words: string): string {
  return words
    .toLowerCase()
    .replace(/[^\w\s-]/g, "")
    .replace(/\s/g, "-");
}

function withoutCode(text: string): string {
  return text.replace(/^(`{3,})[\s\S]*?^\1/gm, "");
}
