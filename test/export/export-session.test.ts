import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { exportSession, type ExportFormat, EXPORT_FORMATS, importSession } from "../../src/export/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { digestOf } from "../../src/stores/doctor/log-digest.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { SessionTree } from "../../src/index.ts";
import type { Message } from "../../src/session/message.ts";
import { assistant, call, message, result, user } from "../sample-log.ts";
import { type Planted, planted } from "./planted-secrets.ts";
import { collect, fillSession, fillWith, PICTURE } from "./sample-session.ts";

const directories: string[] = [];
afterEach(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true });
});

async function exported(store: SessionStore, format: ExportFormat, options: { leafId?: string | null } = {}) {
  return collect(exportSession(store, "talk", { format, ...options }));
}

describe("every export", () => {
  test.for(EXPORT_FORMATS)("as %s refuses a missing session or leaf, and an unknown format", async (format) => {
    await using store = await openMemoryStore();
    await fillSession(store);
    await expect(collect(exportSession(store, "nobody", { format }))).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
    await expect(exported(store, format, { leafId: "nowhere" })).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
    await expect(exported(store, format, { leafId: "b1" })).rejects.toMatchObject({ code: "INVALID_ENTRY" });
    const wrong = exportSession(store, "talk", { format: "pdf" as ExportFormat });
    await expect(collect(wrong)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });

  test.for(EXPORT_FORMATS)("as %s ends with an error when the session is deleted meanwhile", async (format) => {
    await using store = await openMemoryStore();
    await fillSession(store);
    const pieces = exportSession(store, "talk", { format })[Symbol.asyncIterator]();
    await pieces.next();
    await store.delete("talk");
    await expect(collect({ [Symbol.asyncIterator]: () => pieces })).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
  });

  test.for(EXPORT_FORMATS)("as %s omits entries that are appended meanwhile", async (format) => {
    await using store = await openMemoryStore();
    await fillSession(store);
    const before = await exported(store, format);
    const pieces = exportSession(store, "talk", { format })[Symbol.asyncIterator]();
    const first = await pieces.next();
    await store.append("talk", [message("late", user("too late"))]);
    expect(`${first.value}${await collect({ [Symbol.asyncIterator]: () => pieces })}`).toBe(before);
  });

  test.for(EXPORT_FORMATS)("as %s shows a session without entries", async (format) => {
    await using store = await openMemoryStore();
    await fillWith(store, []);
    expect(await exported(store, format)).toContain("talk");
  });
});

describe("an export as JSONL", () => {
  test("opens as a session's file", async () => {
    await using store = await openMemoryStore();
    await fillSession(store);
    const directory = await mkdtemp(join(tmpdir(), "export-"));
    directories.push(directory);
    const path = join(directory, "talk.jsonl");
    await writeFile(path, await exported(store, "jsonl"));
    const tree = await SessionTree.open(path);
    expect(await tree.entries()).toEqual(await entriesOf(store));
    expect([tree.id, await tree.getName()]).toEqual(["talk", "A talk"]);
    await tree.close();
  });

  test("of one path holds that path with its labels and the name, and nothing of other branches", async () => {
    await using store = await openMemoryStore();
    await fillSession(store);
    await using other = await openMemoryStore();
    const head = await importSession(other, exportSession(store, "talk", { format: "jsonl", leafId: "u3" }));
    expect((await entriesOf(other)).map(({ id }) => id)).toEqual(["u1", "a1", "t1", "a2", "u3", "b1", "n1"]);
    expect([head.leafId, head.name]).toEqual(["u3", "A talk"]);
    await using empty = await openMemoryStore();
    await importSession(empty, exportSession(store, "talk", { format: "jsonl", leafId: null }));
    expect((await entriesOf(empty)).map(({ id }) => id)).toEqual(["n1"]);
  });
});

describe("an export as Markdown", () => {
  test("shows the active path, with its data in the front matter", async () => {
    await using store = await openMemoryStore();
    await fillSession(store);
    const markdown = await exported(store, "markdown");
    expect(markdown).toMatch(/^---\nid: "talk"\nname: "A talk"\n/);
    expect(markdown).toContain("\ncost: 0.75\n---\n\n# A talk\n");
    expect(markdown.match(/^## .*/gm)).toEqual([
      "## User",
      "## Assistant",
      "## Tool: look",
      "## Assistant",
      "## User",
      "## Compaction: a summary of what came before",
      "## Assistant",
    ]);
    expect(markdown).toContain("> Please look at *the* `file`.");
    expect(markdown).toContain(
      '<summary>Call of look</summary>\n\n```json\n{\n  "path": "a.txt"\n}\n```\n\n</details>',
    );
    expect(markdown).toContain("<summary>Thinking</summary>\n\n```text\nI must look.\n```");
    expect(markdown).toContain("label: turning point");
    expect(markdown).not.toContain("A picture");
  });

  test("of another leaf is that path", async () => {
    await using store = await openMemoryStore();
    await fillSession(store);
    const markdown = await exported(store, "markdown", { leafId: "u2" });
    expect(markdown).toContain("> A picture");
    expect(markdown).toContain("(image: dot.png, image/png, about");
    expect(markdown).not.toContain(PICTURE);
    expect(markdown).not.toContain("Another question");
    expect((await exported(store, "markdown", { leafId: null })).match(/^## /gm)).toBeNull();
  });

  test("marks a compaction that was undone", async () => {
    await using store = await openMemoryStore();
    await fillSession(store);
    await store.append("talk", [{ type: "compaction_undone", targetId: "k1" }]);
    expect(await exported(store, "markdown")).toContain("900 tokens before · undone");
  });

  test("keeps any message inside its quotation", async () => {
    await fc.assert(
      fc.asyncProperty(hostileMarkdown, hostileMarkdown, async (said, returned) => {
        await using store = await openMemoryStore();
        await fillWith(store, [
          message("u", user(said)),
          message("a", assistant(said, { toolCalls: [call("c", "look", returned)] })),
          message("t", result("c", `result${returned}`)),
          message("end", user("the end")),
        ]);
        const markdown = await exported(store, "markdown");
        expect(outsideOf(markdown)).toEqual([
          "# talk",
          "## User",
          "## Assistant",
          "<details>",
          "<summary>Call of look</summary>",
          "</details>",
          "## Tool: look",
          "<details>",
          "<summary>Result of look</summary>",
          "</details>",
          "## User",
        ]);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not be there.
        expect(markdown).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
      }),
      { numRuns: 60 },
    );
  });

  test.for([
    ["a tag after a backslash", "\\<script>alert(1)</script>", "> \\\\\\<script>alert(1)\\</script>"],
    ["a backtick that a backslash takes out", "\\`<b>`", "> \\\\`<b>`"],
    ["a tag in code", "`Map<string>` <b>", "> `Map<string>` \\<b>"],
    ["a backtick without a partner", "a ` <b>", "> a \\` \\<b>"],
    [
      "a link that runs",
      "[x](javascript:alert(1)) [y](https://a.b/)",
      "> [x]\\(javascript:alert(1)) [y](https://a.b/)",
    ],
    ["a picture from elsewhere", "![x](https://a.b/)", "> \\![x](https://a.b/)"],
    ["a definition", "[x]: https://a.b/", "> [x\\]: https://a.b/"],
    ["a fence without an end", "```js\n</details>", "> ```js\n> </details>\n> ```"],
    ["a fence in a fence", "~~~\n```\n~~~", "> ````\n> ```\n> ````"],
    ["a heading after a carriage return", "a\r# b", "> a\n> # b"],
  ])("contains %s", async ([, said, expected]) => {
    await using store = await openMemoryStore();
    await fillWith(store, [message("u", user(said as string))]);
    expect(await exported(store, "markdown")).toContain(`\n\n${expected}\n`);
  });
});

describe("a sanitized export", () => {
  test("contains no secret of any kind from any field, in any format and encoding", async () => {
    const kinds = planted.map(({ arbitrary }) => arbitrary);
    await fc.assert(
      fc.asyncProperty(fc.tuple(...kinds), fc.constantFrom(" ", "\n", '"', "'", "\t", ""), async (secrets, around) => {
        await using store = await openMemoryStore();
        for (const [place, session] of secrets.map((one, index) => [index, sessionWith(one, around)] as const))
          await store.create(createHeader({ id: `s${place}`, metadata: { note: session.text } }), {
            entries: session.entries,
          });
        for (const [place, { secret }] of secrets.entries()) {
          for (const format of EXPORT_FORMATS) {
            const text = await collect(exportSession(store, `s${place}`, { format, sanitize: true }));
            for (const spelling of spellingsOf(secret)) expect(text).not.toContain(spelling);
            expect(text).toMatch(/\[secret \d\]/);
          }
        }
      }),
      { numRuns: 3 },
    );
  });

  test("contains no secret that a control character hid from the sanitizer", async () => {
    await using store = await openMemoryStore();
    const secret = "AKIAABCDEFGH12345678";
    const hidden = ["\u0000", "\u001b[0m", "\u202e", "\u0085", "\u001b"].map(
      (control) => `AKIA${control}ABCDEFGH12345678`,
    );
    await fillWith(store, [
      message("u", user(hidden.join("\n"))),
      message("a", assistant(null, { toolCalls: [call("c", "look", JSON.stringify(hidden))] })),
    ]);
    for (const format of ["markdown", "html"] as const)
      expect(await collect(exportSession(store, "talk", { format, sanitize: true }))).not.toContain(secret);
  });

  test("contains no part of a secret that a title would cut in half", async () => {
    await using store = await openMemoryStore();
    const secret = `ghp_${"a1".repeat(18)}`;
    const said = `${"word ".repeat(16)}${secret}`;
    await fillWith(store, [message("u", user(said)), { type: "leaf", targetId: null }, message("v", user(said))]);
    expect(await collect(exportSession(store, "talk", { format: "html", sanitize: true }))).not.toContain("ghp_");
  });

  test("as JSONL is imported with the same tree, also when ids hold secrets", async () => {
    await using store = await openMemoryStore();
    const [id, parent, entry] = ["a1", "b2", "c3"].map((pair) => `sk-${pair.repeat(18)}`) as [string, string, string];
    const lineage = { parents: [parent], operator: "fork", kind: "op_fork", extras: [] } as const;
    const forkedFrom = { sessionId: parent, entryId: entry, version: 1 };
    await store.create(createHeader({ id, cwd: "/home/ann/x", lineage, forkedFrom }), {
      entries: [
        message(entry, user("one")),
        message("two", user("two")),
        { type: "label", targetId: entry, label: "x" },
      ],
    });
    await using other = await openMemoryStore();
    const head = await importSession(other, exportSession(store, id, { format: "jsonl", sanitize: true }), {
      id: "talk",
      trust: true,
    });
    expect((await entriesOf(other)).map(({ id: own, parentId }) => [own, parentId])).toEqual([
      ["[secret 3]", null],
      ["two", "[secret 3]"],
      [expect.any(String), "two"],
    ]);
    expect([head.header.cwd, head.header.lineage.parents]).toEqual(["~/x", ["secret-2"]]);
    expect(head.header.forkedFrom).toEqual({ sessionId: "secret-2", entryId: "[secret 3]", version: 1 });
  });

  test("does not change a session without secrets", async () => {
    await using store = await openMemoryStore();
    await fillSession(store);
    for (const format of EXPORT_FORMATS)
      expect(await collect(exportSession(store, "talk", { format, sanitize: true }))).toBe(
        await exported(store, format),
      );
  });
});

test("a JSONL export that is imported elsewhere with trust is the same session", async () => {
  await using store = await openMemoryStore();
  await fillSession(store);
  await using other = await openMemoryStore();
  const head = await importSession(other, exportSession(store, "talk", { format: "jsonl" }), { trust: true });
  expect([head.version, head.leafId, head.name]).toEqual([11, "a3", "A talk"]);
  expect(await digestOf(other, "talk")).toEqual(await digestOf(store, "talk"));
});

async function entriesOf(store: SessionStore) {
  const entries = [];
  for await (const entry of store.read("talk")) entries.push(entry);
  return entries;
}

/** A session that has the same text in every field that an export shows, and in some others. */
function sessionWith({ text }: Planted, around: string): { text: string; entries: EntryDraft[] } {
  const said = `${around}${text}${around}`;
  const json = JSON.stringify({ deep: [{ note: said }] });
  return {
    text: said,
    entries: [
      message("u", user(said)),
      message(
        "f",
        user([
          { type: "text", text: said },
          { type: "file", mediaType: "text/plain", data: Buffer.from(said).toString("base64"), name: said },
        ]),
      ),
      message("a", {
        ...assistant(
          [
            { type: "thinking", text: said },
            { type: "text", text: `\`${said}\`` },
          ],
          { toolCalls: [call("c", said, json)], model: said, providerData: { said } },
        ),
        agent: said,
        metadata: { list: [said] },
      }),
      message("t", result("c", json)),
      { type: "branch_summary", summary: said, fromId: null, details: { said } },
      { type: "compaction", summary: said, firstKeptEntryId: "u", tokensBefore: 1 },
      { type: "custom_message", customType: said, content: said, display: true },
      { type: "variables", set: { note: said }, unset: [said], systemPrompt: said },
      { type: "model_change", provider: said, modelId: said },
      { type: "custom", id: "x", customType: "note", data: said },
      { type: "label", targetId: "x", label: said },
      { type: "session_info", name: said },
      { type: "leaf", targetId: "u" },
      message("v", user(said)),
    ],
  };
}

function spellingsOf(secret: string): string[] {
  const html = secret.replace(
    /[&<>"']/g,
    (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c] as string,
  );
  const json = JSON.stringify(secret).slice(1, -1);
  return [
    secret,
    json,
    JSON.stringify(json).slice(1, -1),
    encodeURIComponent(secret),
    html,
    Buffer.from(secret).toString("base64"),
  ];
}

/** The lines of a Markdown text that are neither quoted nor fenced nor plain. */
function outsideOf(markdown: string): string[] {
  const lines: string[] = [];
  let fence: string | null = null;
  for (const line of markdown.replace(/^---\n[\s\S]*?\n---\n/, "").split("\n")) {
    const marks = /^`{3,}/.exec(line)?.[0] ?? null;
    if (fence !== null) {
      if (line === fence) fence = null;
    } else if (marks !== null) fence = marks;
    else if (!line.startsWith(">") && /^\s*[#<]/.test(line)) lines.push(line);
  }
  return lines;
}

const hostileMarkdown = fc
  .array(
    fc.oneof(
      fc.string({ maxLength: 8 }),
      fc.constantFrom(
        "```",
        "````",
        "~~~",
        "`",
        "\n",
        "\r",
        "\r\n",
        "# ",
        "## User",
        "</details>",
        "<script>",
        "> ",
        "---\n",
      ),
      fc.constantFrom(
        "\\",
        "[x](javascript:a)",
        "![",
        "]:",
        "\u001b]0;x\u0007",
        "\u001b[2J",
        "\u202e",
        "\u2028",
        "<!--",
        "\t",
        "    ",
      ),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(""));

test.for(["markdown", "html"] as const)(
  "an export as %s has what was said, and marks what models do not see so",
  async (format) => {
    await using store = openMemoryStore();
    await store.create(createHeader({ id: "talk" }));
    const tree = await SessionTree.on(store, "talk");
    const say = (id: string, message: Message) =>
      tree.append({ type: "message", message, id, timestamp: "2026-01-01T00:00:00.000Z" });
    await say("q", user("the question"));
    await say("c", assistant("I look.", { toolCalls: [call("x", "bash", "{}")] }));
    await say("r", result("x", "a long log"));
    await say("l", user("a long request"));
    await tree.omit("r");
    await tree.replace("l", user("a short one"));
    await tree.undoEdit((await tree.omit("q")).id);
    const text = await exported(store, format);
    for (const words of ["the question", "I look.", "a long log", "a long request"]) expect(text).toContain(words);
    expect(text).not.toContain("a short one");
    // The call goes with its result.
    expect(text.match(/left out of what models see/g)).toHaveLength(2);
    expect(text.match(/models see another text/g)).toHaveLength(1);
    expect(text.lastIndexOf("a long request")).toBeGreaterThan(text.indexOf("models see another text"));
    const before = await exported(store, format, { leafId: "l" });
    expect(before).not.toMatch(/left out of what|models see another/);
  },
);
