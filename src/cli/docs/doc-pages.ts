import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SessionError, show } from "../../session/errors.ts";
import { suggestion } from "../../internal/nearest.ts";

/** A page of the documentation. */
export interface DocPage {
  /** Its path below `docs/`, without `.md`, as in `guides/runs`. */
  readonly name: string;
  readonly title: string;
  /** Its description in the table of contents; empty if the page is not in it. */
  readonly about: string;
  readonly sections: readonly DocSection[];
}

/** A heading of a page, with the text up to the next one. */
export interface DocSection {
  readonly heading: string;
  /** The fragment of a link to it; empty for the beginning of the page. */
  readonly anchor: string;
  /** Markdown, with the heading. */
  readonly text: string;
}

/** Design decisions are for those who change Skein. */
const LEFT_OUT = /^(decisions|images|pictures)\//;

/** Reads all pages in a directory of documentation. */
export async function readDocPages(directory: string): Promise<readonly DocPage[]> {
  const files = await readdir(directory, { recursive: true }).catch((cause: unknown) => {
    throw new SessionError("INVALID_OPTION", `The documentation is not at ${show(directory)}; install skein again.`, {
      cause,
    });
  });
  const names = files
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".md") && !LEFT_OUT.test(file))
    .map((file) => file.slice(0, -".md".length))
    .sort();
  const about = aboutOf(await readFile(join(directory, "README.md"), "utf8"));
  return Promise.all(
    names.map(async (name) => {
      const sections = sectionsOf(await readFile(join(directory, `${name}.md`), "utf8"));
      return { name, title: sections[0]?.heading ?? name, about: about.get(name) ?? "", sections };
    }),
  );
}

/** The part of a page that a name such as `guides/runs`, `runs.md` or `runs#telemetry` stands for; null if none does. */
export function findDocPart(
  pages: readonly DocPage[],
  text: string,
): { readonly page: DocPage; readonly sections: readonly DocSection[] } | null {
  const [path = "", anchor] = text.replace(/^(\.\/)?docs\//, "").split("#");
  const name = path.replace(/\.md$/, "").toLowerCase();
  const page = pages.find((each) => each.name === name) ?? pages.find((each) => each.name.endsWith(`/${name}`));
  if (page === undefined) return null;
  if (anchor === undefined) return { page, sections: page.sections };
  const section = page.sections.find((each) => each.anchor === anchor);
  if (section !== undefined) return { page, sections: [section] };
  const anchors = page.sections.map((each) => each.anchor);
  throw new SessionError(
    "INVALID_OPTION",
    `The page ${page.name} has no section #${anchor};${suggestion(anchor, anchors) || ` skein docs ${page.name} shows it.`}`,
  );
}

/** The description of each page in the table of contents. */
function aboutOf(contents: string): ReadonlyMap<string, string> {
  const lines = contents.matchAll(/^- \[[^\]]*\]\((?<path>[\w/-]+)\.md\): (?<about>.*)$/gm);
  return new Map([...lines].map(({ groups }) => [groups?.path ?? "", groups?.about ?? ""]));
}

function sectionsOf(text: string): readonly DocSection[] {
  const sections: { heading: string; anchor: string; lines: string[] }[] = [];
  let isCode = false;
  for (const line of text.trimEnd().split("\n")) {
    if (line.startsWith("```")) isCode = !isCode;
    const heading = isCode ? undefined : /^#{1,3} (.*)$/.exec(line)?.[1];
    if (heading !== undefined) {
      const plain = plainText(heading);
      sections.push({ heading: plain, anchor: sections.length === 0 ? "" : anchorOf(plain), lines: [] });
    }
    sections.at(-1)?.lines.push(line);
  }
  return sections.map(({ lines, ...section }) => ({ ...section, text: lines.join("\n").trim() }));
}

/** A line of Markdown without its marks: the words of links, code and emphasis. */
export function plainText(line: string): string {
  return line
    .replace(/!\[[^[\]]*\]\([^()]*\)/g, "")
    .replace(/\[([^[\]]*)\]\([^()]*\)/g, "$1")
    .replace(/\*\*([^*]+)\*\*/g, "$1");
}

/** The fragment that renderers of Markdown make of a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}
