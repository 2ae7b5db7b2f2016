import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { exportSession } from "../../src/export/index.ts";
import { HTML_STYLE } from "../../src/export/html-style.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { assistant, call, message, result, user } from "../sample-log.ts";
import { type HtmlPage, readHtml } from "./read-html.ts";
import { collect, fillSession, fillWith, PICTURE } from "./sample-session.ts";

const LINE_CHARACTERS = 5_000_000;

/** Every element that a page may have, with its attributes and their allowed values. */
const ALLOWED: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  html: { lang: /^en$/ },
  head: {},
  meta: {
    charset: /^utf-8$/,
    "http-equiv": /^Content-Security-Policy$/,
    name: /^(?:viewport|referrer)$/,
    content:
      /^(?:default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]+'; img-src data:; base-uri 'none'; form-action 'none'|width=device-width, initial-scale=1|no-referrer)$/,
  },
  title: {},
  style: {},
  body: {},
  header: {},
  nav: { "aria-label": /./ },
  main: {},
  section: { "aria-label": /./ },
  article: { class: /^(?:system|user|assistant|tool|summary|note)$/, id: /^turn-\d+$/ },
  h1: { dir: /^auto$/ },
  h2: { dir: /^auto$/ },
  h3: { dir: /^auto$/ },
  h4: { dir: /^auto$/ },
  h5: { dir: /^auto$/ },
  h6: { dir: /^auto$/ },
  dl: {},
  dt: {},
  dd: { dir: /^auto$/ },
  ol: { start: /^\d+$/ },
  ul: {},
  li: { dir: /^auto$/ },
  p: { dir: /^auto$/, class: /^details$/ },
  pre: { dir: /^auto$/ },
  code: {},
  strong: {},
  em: {},
  span: { dir: /^auto$/, class: /^(?:failed|label)$/ },
  time: { datetime: /^[\d:.TZ-]+$/ },
  details: {},
  summary: {},
  a: { href: /^(?:#turn-\d+$|https?:\/\/|mailto:)/i, rel: /^noopener noreferrer nofollow$/, dir: /^auto$/ },
  img: { src: /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/, alt: /^Picture: / },
};

async function pageOf(store: SessionStore, options: { leafId?: string | null } = {}): Promise<HtmlPage> {
  return check(await collect(exportSession(store, "talk", { format: "html", ...options })));
}

function check(html: string): HtmlPage {
  const page = readHtml(html);
  for (const { name, attributes } of page.tags) {
    const allowed = ALLOWED[name];
    expect(allowed, `<${name}>`).toBeDefined();
    for (const [attribute, value] of attributes) {
      expect(Object.keys(allowed ?? {}), `<${name} ${attribute}>`).toContain(attribute);
      expect(value, `<${name} ${attribute}>`).toMatch(allowed?.[attribute] as RegExp);
    }
    if (name === "a" && !attributes.get("href")?.startsWith("#")) expect(attributes.has("rel")).toBe(true);
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not be there.
  expect(html).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  const levels = page.tags.flatMap(({ name }) => (/^h\d$/.test(name) ? [Number(name[1])] : []));
  for (const [index, level] of levels.entries()) expect(level).toBeLessThanOrEqual((levels[index - 1] ?? 0) + 1);
  return page;
}

describe("an export as HTML", () => {
  test("is one page that allows nothing but its own style, and has its landmarks", async () => {
    await using store = await openMemoryStore();
    await fillSession(store);
    const html = await collect(exportSession(store, "talk", { format: "html" }));
    const { tags } = check(html);
    const style = /<style>([\s\S]*?)<\/style>/.exec(html)?.[1] as string;
    const policy = tags.find(({ attributes }) => attributes.has("http-equiv"))?.attributes.get("content");
    expect(policy).toContain(`'sha256-${createHash("sha256").update(style).digest("base64")}'`);
    expect(style).toContain("prefers-color-scheme: dark");
    expect(style).not.toMatch(/url\(|@import/);
    for (const name of ["html", "title", "h1", "header", "nav", "main", "section"])
      expect(tags.filter((tag) => tag.name === name).length, name).toBe(1);
  });

  test("is readable in light and in dark", () => {
    const [light, dark] = HTML_STYLE.split("@media (prefers-color-scheme: dark)").map((part) => {
      const pairs = [...part.matchAll(/--(\w+): #([0-9a-f]{6})/g)];
      return new Map(pairs.map(([, name, colour]) => [name, brightnessOf(colour as string)]));
    });
    for (const colours of [light, dark]) {
      for (const text of ["text", "soft", "accent", "failed"]) {
        for (const ground of ["page", "card"]) {
          const [a, b] = [colours?.get(text) as number, colours?.get(ground) as number];
          expect((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), `${text} on ${ground}`).toBeGreaterThan(4.5);
        }
      }
    }
  });

  test("shows the path, what each turn cost, and where it branched", async () => {
    await using store = await openMemoryStore();
    await fillSession(store);
    const { tags, text } = await pageOf(store);
    expect(tags.filter(({ name }) => name === "article").map(({ attributes }) => attributes.get("id"))).toEqual(
      [0, 1, 2, 3, 6, 7, 8].map((seq) => `turn-${seq}`),
    );
    const links = tags.filter(({ name }) => name === "a").map(({ attributes }) => attributes.get("href"));
    expect(links).toEqual(["#turn-0", "#turn-6", "#turn-3"]);
    expect(text).toContain("model-1 · 10 tokens in, 5 out · $0.25");
    expect(text).toContain("turning point");
    expect(text).toMatch(/Branches that are not shown\s+After turn 3: 1\s+A picture/);
  });

  test("of another leaf is that path, and its picture is in it", async () => {
    await using store = await openMemoryStore();
    await fillSession(store);
    const { tags, text } = await pageOf(store, { leafId: "u2" });
    expect(tags.filter(({ name }) => name === "img").map(({ attributes }) => attributes.get("src"))).toEqual([
      `data:image/png;base64,${PICTURE}`,
    ]);
    expect(text).toMatch(/After turn 3: 1\s+Another question/);
  });

  test("omits a pruned branch", async () => {
    await using store = await openMemoryStore();
    await fillSession(store);
    await store.append("talk", [{ type: "prune", targetId: "u2" }]);
    expect((await pageOf(store)).text).not.toContain("Branches");
  });

  test("counts the branches that it does not list", async () => {
    await using store = await openMemoryStore();
    await fillWith(store, [message("r", user("root"))]);
    for (let i = 0; i < 8; i++) await store.append("talk", [message(`b${i}`, user(`branch ${i}`))], { onto: "r" });
    const { text } = await pageOf(store, { leafId: "r" });
    expect(text).toMatch(/After turn 0: 8\s+branch 0branch 1branch 2branch 3branch 4and 3 more/);
  });

  test("renders Markdown, and links only to the web", async () => {
    await using store = await openMemoryStore();
    const said = [
      "# Title\n### Deep\ntext **bold** *slanted* _also_ `a<b>` snake_case_name",
      "- one\n- two\n  more\n\n3. three\n4. four",
      "```js\nconst a = `<b>`;\n```",
      "[web](https://a.b/?x=1&y=2) [mail](mailto:a@b.c) [run](javascript:alert(1)) [data](data:text/html,x)",
    ].join("\n\n");
    await fillWith(store, [message("u", assistant(said))]);
    const html = await collect(exportSession(store, "talk", { format: "html" }));
    check(html);
    expect(html).toContain('<h3 dir="auto">Title</h3>\n<h4 dir="auto">Deep</h4>');
    expect(html).toContain(
      "text <strong>bold</strong> <em>slanted</em> <em>also</em> <code>a&lt;b&gt;</code> snake_case_name",
    );
    expect(html).toContain('<ul><li dir="auto">one</li>\n<li dir="auto">two\nmore</li></ul>');
    expect(html).toContain('<ol start="3"><li dir="auto">three</li>\n<li dir="auto">four</li></ol>');
    expect(html).toContain('<pre dir="auto"><code>const a = `&lt;b&gt;`;</code></pre>');
    expect(html).toContain('<a href="https://a.b/?x=1&amp;y=2" rel="noopener noreferrer nofollow">web</a>');
    expect(html).toContain("[run](javascript:alert(1)) [data](data:text/html,x)");
  });

  test.for([
    ["image/svg+xml", PICTURE],
    ["image/png;charset=x", PICTURE],
    ['image/png" onload="alert(1)', PICTURE],
    ["image/png", 'AAAA" onerror="alert(1)'],
    ["image/png", ""],
    ["text/html", PICTURE],
  ])("shows an image of the unsafe type %j only by its name", async ([mediaType, data]) => {
    await using store = await openMemoryStore();
    const part = { type: "image", mediaType: mediaType as string, data: data as string, name: '"><script>' } as const;
    await fillWith(store, [message("u", user([part]))]);
    const { tags, text } = await pageOf(store);
    expect(tags.some(({ name }) => name === "img")).toBe(false);
    expect(text).toContain('image: "><script>');
  });

  test("escapes quotes in attributes", async () => {
    await using store = await openMemoryStore();
    const name = '" onerror="x';
    await fillWith(store, [
      message("u", user([{ type: "image", mediaType: "image/png", data: PICTURE, name }])),
      message("a", assistant('[x](https://a.b/"onclick="x")')),
    ]);
    const { tags } = await pageOf(store);
    expect(tags.find((tag) => tag.name === "img")?.attributes.get("alt")).toBe(`Picture: ${name}`);
    expect(tags.at(-1)?.attributes.get("href")).toBe('https://a.b/"onclick="x"');
  });

  test("runs no script and stays well-formed for any messages", async () => {
    await fc.assert(
      fc.asyncProperty(hostile, hostile, hostile, async (a, b, c) => {
        await using store = await openMemoryStore();
        await fillHostile(store, [a, b, c]);
        const { text } = await pageOf(store);
        expect(text).toContain("the end");
      }),
      { numRuns: 40 },
    );
  });

  test("shows a line of five megabytes", async () => {
    await using store = await openMemoryStore();
    const said = "<b> ".repeat(LINE_CHARACTERS / 4);
    await fillWith(store, [message("u", user(said)), message("t", result("c", said))]);
    const html = await collect(exportSession(store, "talk", { format: "html" }));
    expect(html.split("&lt;b&gt;").length).toBeGreaterThan(LINE_CHARACTERS / 2);
    expect(html).not.toContain("<b>");
  });

  test.for(["<script>", "*a", "**", "[a](", "`", "_a ", "\n", "- ", "# ", "\u202e\u001b[", "&amp;", "```\n"])(
    "comes to an end for a long text of %j",
    async (piece) => {
      await using store = await openMemoryStore();
      const said = piece.repeat(Math.ceil(200_000 / piece.length));
      await fillWith(store, [message("u", user(said)), message("a", assistant("the end"))]);
      const html = await collect(exportSession(store, "talk", { format: "html" }));
      expect(html).toMatch(/the end<\/p>\n<\/article>\n<\/main>\n<\/body>\n<\/html>\n$/);
    },
  );
});

/** The relative luminance of a colour, as the guidelines for accessibility define it. */
function brightnessOf(colour: string): number {
  const [red, green, blue] = [0, 2, 4].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

async function fillHostile(store: SessionStore, [a, b, c]: readonly [string, string, string]): Promise<void> {
  await store.create(createHeader({ id: "talk" }), {
    entries: [
      message("u", user(a)),
      message("f", user([{ type: "file", mediaType: a, data: b, name: c }])),
      message(
        "s",
        assistant(
          [
            { type: "thinking", text: b },
            { type: "text", text: c },
          ],
          { toolCalls: [call("c", `n${a}`, b)], model: c },
        ),
      ),
      message("t", { ...result("c", a), agent: b } as ReturnType<typeof result>),
      { type: "custom_message", customType: `x${b}`, content: c, display: true },
      { type: "compaction", summary: `x${a}`, firstKeptEntryId: "u", tokensBefore: 1 },
      { type: "model_change", provider: `x${b}`, modelId: `x${c}` },
      { type: "variables", set: {}, unset: [], systemPrompt: a },
      { type: "label", targetId: "u", label: `x${b}` },
      { type: "session_info", name: c },
      { type: "leaf", targetId: "f" },
      message("v", user(b)),
      message("end", assistant("the end")),
    ],
  });
}

const hostile = fc
  .array(
    fc.oneof(
      fc.string({ maxLength: 10, unit: "binary" }),
      fc.constantFrom(
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '" onmouseover="alert(1)',
        "' autofocus onfocus='alert(1)",
        "<svg onload=alert(1)>",
        "</pre></details></article></main></body>",
        "<!--",
        "-->",
        "]]>",
        "</style><script>",
        "[x](javascript:alert(1))",
        '[x](https://a.b/"onclick="alert(1))',
        '[x](https://a.b/"onclick="x")',
        "[**x**](https://a.b/*y*)",
        "[x](JaVaScRiPt:alert(1))",
        "[x](http://a.b/`c`)",
        "**[a](https://b.c/**d**)**",
        "<javascript:alert(1)>",
        "&lt;script&gt;",
        "&#x3c;script>",
      ),
      fc.constantFrom(
        "```",
        "~~~",
        "`",
        "*",
        "**",
        "_",
        "[",
        "]",
        "(",
        ")",
        "\n",
        "\r",
        "# ",
        "- ",
        "1. ",
        "&",
        "<",
        ">",
      ),
      fc.constantFrom("\u202e", "\u001b[31m", "\u001b]8;;https://a.b\u0007", "\u0000", "\u2028", "\ud800", "\ufeff"),
    ),
    { maxLength: 10 },
  )
  .map((parts) => parts.join(""));
