import { describe, expect, test } from "vitest";
import { exportSession } from "../../src/export/index.ts";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";

// Imported by name only at run time: the types of React would change those of the browser tests.
const load = (name: string) => import(name);
const [{ createElement }, { renderToStaticMarkup }, { default: Markdown }, { default: remarkGfm }] = await Promise.all(
  ["react", "react-dom/server", "react-markdown", "remark-gfm"].map(load),
);

const HOSTILE: Readonly<Record<string, string>> = {
  "a heading": "# x",
  "a line and a heading": "x\n# heading\n\n## User",
  "a carriage return and a heading": "x\r# heading\r\r## User",
  "a link": "[x](https://evil.example)",
  "an address": "https://evil.example/a and www.evil.example and ann@evil.example",
  "a picture": "![x](https://evil.example/x.png)",
  "a reference": "[x]\n\n[x]: https://evil.example",
  "a tag": "<script>alert(1)</script><img src=x onerror=alert(1)>",
  "an end of details": "</summary></details><b>x",
  "a comment that does not end": "<!-- x",
  backticks: "`x` ``` ````x",
  "a fence": "```\n# heading\n```\n# heading",
  "a fence of tildes": "~~~\n# heading",
  "a rule": "---\n\n***\n===",
  "front matter": "---\ntitle: x\n---\n# heading",
  "a list": "- x\n* x\n+ x\n1. x\n1) x",
  "a quotation": "> x",
  "a table": "| a | b |\n|---|---|\n| c | d |",
  "code by indentation": "    code",
  entities: "&lt;script&gt; &#60;b&#62;",
  emphasis: "*x* __x__ ~~x~~",
  "a backslash at the end": "x\\",
  mathematics: "$x$ $$x$$",
  nothing: " \n ",
};

/** A session that has the same text in every field with a name. */
function sessionNaming(text: string): EntryDraft[] {
  return [
    { type: "session_info", name: text },
    { type: "model_change", provider: text, modelId: text },
    { type: "thinking_level_change", thinkingLevel: text },
    {
      type: "message",
      id: "u",
      message: {
        role: "user",
        content: [
          { type: "file", mediaType: `text/${text}`, name: text, data: "eA==" },
          { type: "image", mediaType: "image/png", name: text, data: "eA==" },
        ],
      },
    },
    { type: "label", targetId: "u", label: text },
    {
      type: "message",
      message: {
        role: "assistant",
        content: null,
        model: text,
        agent: text,
        toolCalls: [{ id: "c", name: text, arguments: "{}" }],
      },
    },
    { type: "message", message: { role: "tool", toolCallId: "c", name: text, content: "done" } },
    { type: "custom_message", customType: text, content: "note", display: true },
  ];
}

async function markdownOf(entries: readonly EntryDraft[], cwd = "/srv"): Promise<string> {
  await using store = openMemoryStore();
  const { header } = await store.create(createHeader({ cwd }), { entries });
  let text = "";
  for await (const piece of exportSession(store, header.id, { format: "markdown" })) text += piece;
  return text;
}

/** The HTML of a Markdown renderer, with the extensions of GitHub. */
function pageOf(markdown: string): string {
  const body = markdown.replace(/^---\n[\s\S]*?\n---\n/, "");
  const page: string = renderToStaticMarkup(createElement(Markdown, { remarkPlugins: [remarkGfm] }, body));
  // An autolink points to the address that it shows.
  return page.replace(/<a href="(?:mailto:|https?:\/\/)?([\w.@-]+)[^"]*">(?:https?:\/\/)?\1[^<]*<\/a>/g, "$1");
}

/** A page without quotations and code, the innermost first. */
function outside(page: string): string {
  const rest = page
    .replace(/<blockquote>(?:(?!<blockquote>)[\s\S])*?<\/blockquote>/g, "Q")
    .replace(/<pre><code[^>]*>[\s\S]*?<\/code><\/pre>/g, "<pre></pre>");
  return rest === page ? rest : outside(rest);
}

/** The elements of a page with their counts. */
function elementsOf(page: string): string[] {
  return [...page.matchAll(/<([a-z0-9]+)/g)].map(([, name]) => name as string).sort();
}

/** The tags in the text itself; outside of a summary, whose text is no Markdown, a backslash makes one a text. */
function tagsOf(markdown: string): string[] {
  const body = markdown.replace(/^---\n[\s\S]*?\n---\n/, "");
  return body
    .split("\n")
    .map((line) => (line.startsWith("<summary>") ? line : line.replaceAll("\\<", "")))
    .flatMap((line) => [...line.matchAll(/<[^>]{0,20}>?/g)].flat());
}

describe.for(Object.entries(HOSTILE))("%s", ([, text]) => {
  test("in every name of a session makes no further element", async () => {
    const [hostile, plain] = [await markdownOf(sessionNaming(text)), await markdownOf(sessionNaming("x"))];
    expect(elementsOf(pageOf(hostile))).toEqual(elementsOf(pageOf(plain)));
    expect(tagsOf(hostile)).toEqual(tagsOf(plain));
  });

  test("in a message stays inside of its quotation or its fence", async () => {
    const said = (words: string): EntryDraft[] => [
      { type: "message", message: { role: "user", content: words } },
      {
        type: "message",
        message: {
          ...{ role: "assistant", content: [{ type: "thinking", text: words }] },
          toolCalls: [{ id: "c", name: "t", arguments: words }],
        },
      },
      { type: "message", message: { role: "tool", toolCallId: "c", name: "t", content: words } },
    ];
    const page = outside(pageOf(await markdownOf(said(`x ${text} x\n${text}\n${"`".repeat(9)}\n~~~~~~~\n${text}`))));
    expect(elementsOf(page)).toEqual(elementsOf(outside(pageOf(await markdownOf(said("x"))))));
  });
});
