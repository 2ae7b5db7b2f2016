import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { VERSION } from "../src/internal/version.ts";
import { FORMAT_VERSION } from "../src/session/log/header.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md", "CHANGELOG.md", ...pagesIn("docs")];

describe("the README", () => {
  test("contains the first example verbatim", () => {
    const region = /\/\/ #region readme\n(?<code>[\s\S]*?)\/\/ #endregion/.exec(read("examples/01-first-session.ts"))
      ?.groups?.code;
    const shown = /```ts\n(?<code>[\s\S]*?)```/.exec(read("README.md"))?.groups?.code;
    expect(region).toBeDefined();
    expect(shown).toBe(region);
    expect((region ?? "").split("\n").filter((line) => line.trim() !== "").length).toBeLessThanOrEqual(15);
  });

  test("fits its limit and names every subpath of the package", () => {
    const readme = read("README.md");
    expect(readme.split("\n").length).toBeLessThanOrEqual(150);
    const { exports } = JSON.parse(read("package.json")) as { exports: Record<string, unknown> };
    for (const subpath of Object.keys(exports)) expect(readme).toContain(`\`${subpath.replace(/^\./, "skein")}\``);
  });
});

describe("the version", () => {
  test("is one in the package, its lock file, the changelog and the documents", () => {
    const { version } = JSON.parse(read("package.json")) as { version: string };
    const lock = JSON.parse(read("package-lock.json")) as { version: string; packages: { "": { version: string } } };
    const [newest] = [...read("CHANGELOG.md").matchAll(/^## (\d+\.\d+\.\d+)/gm)].map((match) => match[1]);
    expect([lock.version, lock.packages[""].version, newest, VERSION]).toEqual(Array(4).fill(version));
    const named = pages
      .filter((page) => page !== "CHANGELOG.md")
      .flatMap((page) =>
        [...read(page).matchAll(/\bskein@?\s?v?(\d+\.\d+\.\d+)/gi)].map((match) => `${page} ${match[1]}`),
      );
    expect(named.filter((text) => !text.endsWith(` ${version}`))).toEqual([]);
  });

  test("deprecates nothing as long as no version is published", () => {
    const published = [...read("CHANGELOG.md").matchAll(/^## \d+\.\d+\.\d+, (?!unreleased)/gm)];
    const deprecated = pages.filter((page) => !page.includes("decisions/") && /\bdeprecated\b/i.test(read(page)));
    expect(published).toEqual([]);
    expect(deprecated).toEqual([]);
  });
});

describe("the pages of the documentation", () => {
  test("show session files in the version that is written", () => {
    const guide = read("docs/guides/session-files.md");
    const shown = [...guide.matchAll(/\{"type":"session","version":(\d+)/g)].map(([, version]) => Number(version));
    expect(shown).toEqual([FORMAT_VERSION]);
  });

  test("have no program whose sessions expire, or whose users are locked out, by a limit that it does not show", () => {
    const programs = [
      ...["README.md", ...pagesIn("docs/recipes"), ...pagesIn("docs/guides")].flatMap((page) =>
        [...read(page).matchAll(/^```(?:ts|js|jsx)\b.*\n([\s\S]*?)^```/gm)].map(([, code = ""]) => ({ page, code })),
      ),
      ...readdirSync(join(root, "examples"))
        .filter((name) => name.endsWith(".ts"))
        .map((name) => ({ page: `examples/${name}`, code: read(`examples/${name}`) })),
    ];
    // Its sessions expire after a day, which is Lexigram's default.
    expect(programs.filter(({ code }) => code.includes("new SessionManager(")).map(({ page }) => page)).toEqual([]);
    const capped = programs.filter(({ code }) => code.includes("maxSessionsPerUser:"));
    expect(capped.length).toBeGreaterThan(0);
    expect(capped.filter(({ code }) => !code.includes("sessionTtl:")).map(({ page }) => page)).toEqual([]);
  });

  test("explain every error code of the source, and no other", () => {
    const declared =
      /type SessionErrorCode =(?<codes>[\s\S]*?);/.exec(read("src/session/errors.ts"))?.groups?.codes ?? "";
    const codes = [...declared.matchAll(/"([A-Z_]+)"/g)].map((match) => match[1]);
    const documented = [...read("docs/errors.md").matchAll(/^\| `([A-Z_]+)`/gm)].map((match) => match[1]);
    expect(codes.length).toBeGreaterThan(10);
    expect([...documented].sort()).toEqual([...codes].sort());
  });

  test("define each word of the glossary once, use it, and link the terms of other libraries to it", () => {
    const [ours = "", theirs = ""] = read("docs/glossary.md").split("## Words that people look for");
    const words = cells(ours, 0).flatMap((cell) => cell.replaceAll("`", "").split(", "));
    const others = pages
      .filter((page) => page !== "docs/glossary.md")
      .map(read)
      .join("\n");
    expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
    expect(words.filter((word) => !new RegExp(`\\b${word}`, "i").test(others))).toEqual([]);
    const answers = cells(theirs, 1);
    expect(answers.length).toBeGreaterThan(20);
    const names = answers.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ""));
    expect(names.filter((name) => !others.includes(name))).toEqual([]);
    const lost = answers.filter((cell) => !cell.includes("`") && !words.some((word) => cell.includes(word)));
    expect(lost).toEqual([]);
  });

  test("walk through the code by files and functions that exist", () => {
    const walks = [...read("docs/architecture.md").matchAll(/```\n([\s\S]*?)```/g)].map((match) => match[1]).join("");
    const steps = [...walks.matchAll(/^[ │├└─]*(?<names>\S.*?) {2,}(?<path>[\w/-]+\.ts)\b/gm)].map(
      (match) => match.groups,
    );
    const missing = steps.flatMap((step) => {
      const text = exists(`src/${step?.path}`) ? read(`src/${step?.path}`) : "";
      const names = (step?.names ?? "").match(/\w+(?=$|\(|,| →)/g) ?? [];
      return names.filter((name) => !text.includes(name)).map((name) => `${name} in ${step?.path}`);
    });
    expect(steps.length).toBeGreaterThan(20);
    expect(missing).toEqual([]);
  });

  test.for(pages)("%s links only to existing targets", (page) => {
    const prose = read(page).replace(/```[\s\S]*?```|`[^`\n]*`/g, "");
    const broken = [...prose.matchAll(/\]\((?!https?:|#)(?<target>[^)#\s]+)/g)]
      .map((match) => match.groups?.target ?? "")
      .filter((target) => !exists(join(dirname(page), target)));
    expect(broken).toEqual([]);
  });
});

/** The cells of one column of a Markdown table, without its heading. */
function cells(table: string, column: number): string[] {
  const rows = table.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("|---"));
  return rows.slice(1).map((row) => (row.split(" | ")[column] ?? "").replace(/^\| /, "").trim());
}

function pagesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name}`);
}

function exists(path: string): boolean {
  try {
    readdirSync(join(root, path));
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOTDIR";
  }
}
