import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md", "CHANGELOG.md", ...pagesIn("docs")];

describe("the README", () => {
  test("shows the first example word for word", () => {
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

describe("the pages of the documentation", () => {
  test("explain every error code that the code knows, and no other", () => {
    const declared =
      /type SessionErrorCode =(?<codes>[\s\S]*?);/.exec(read("src/session/errors.ts"))?.groups?.codes ?? "";
    const codes = [...declared.matchAll(/"([A-Z_]+)"/g)].map((match) => match[1]);
    const documented = [...read("docs/errors.md").matchAll(/^\| `([A-Z_]+)`/gm)].map((match) => match[1]);
    expect(codes.length).toBeGreaterThan(10);
    expect([...documented].sort()).toEqual([...codes].sort());
  });

  test.for(pages)("%s links only to what is there", (page) => {
    const prose = read(page).replace(/```[\s\S]*?```|`[^`\n]*`/g, "");
    const broken = [...prose.matchAll(/\]\((?!https?:|#)(?<target>[^)#\s]+)/g)]
      .map((match) => match.groups?.target ?? "")
      .filter((target) => !exists(join(dirname(page), target)));
    expect(broken).toEqual([]);
  });
});

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
