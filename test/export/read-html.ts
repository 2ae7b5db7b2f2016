/** A tag that begins an element, with its attributes as they were before they were escaped. */
export interface HtmlTag {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
}

/** A parsed page. */
export interface HtmlPage {
  readonly tags: readonly HtmlTag[];
  /** The text between the tags, without the style. */
  readonly text: string;
}

const VOID = new Set(["meta", "img"]);
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };

/** Parses a page more strictly than a browser: every tag must be closed in order, every attribute quoted. */
export function readHtml(html: string): HtmlPage {
  const tags: HtmlTag[] = [];
  const open: string[] = [];
  const texts: string[] = [];
  const begin = "<!doctype html>\n";
  if (!html.startsWith(begin)) throw new Error("The page does not begin with its type.");
  let at = begin.length;
  while (at < html.length) {
    const next = html.indexOf("<", at);
    const text = html.slice(at, next < 0 ? html.length : next);
    texts.push(plainText(text));
    if (next < 0) break;
    const end = html.indexOf(">", next);
    const inside = html.slice(next + 1, end);
    at = end + 1;
    if (inside.startsWith("/")) {
      if (open.pop() !== inside.slice(1)) throw new Error(`</${inside.slice(1)}> closes nothing.`);
      continue;
    }
    const tag = readTag(inside);
    tags.push(tag);
    if (!VOID.has(tag.name)) open.push(tag.name);
    if (tag.name !== "style") continue;
    at = html.indexOf("</style>", at);
  }
  if (open.length > 0) throw new Error(`${open.join(" ")} is not closed.`);
  return { tags, text: texts.join("") };
}

function readTag(inside: string): HtmlTag {
  const match = /^([a-z][a-z0-9]*)((?: [a-z-]+="[^"<>]*"| open)*)$/.exec(inside);
  if (match === null) throw new Error(`<${inside.slice(0, 200)}> is not a tag.`);
  const pairs = [...(match[2] as string).matchAll(/ ([a-z-]+)="([^"]*)"/g)];
  return {
    name: match[1] as string,
    attributes: new Map(pairs.map(([, name, value]) => [name as string, plainText(value as string)])),
  };
}

function plainText(text: string): string {
  if (text.includes(">")) throw new Error(`A mark stands in the text ${text.slice(0, 200)}.`);
  return text.replace(/&([a-z0-9#]*);?/g, (whole, name: string) => {
    const character = ENTITIES[name];
    if (character === undefined || !whole.endsWith(";")) throw new Error(`${whole} is not escaped.`);
    return character;
  });
}
