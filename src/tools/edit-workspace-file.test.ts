import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ToolContext } from "../agent/tools/tool.ts";
import type { Sandbox } from "../session/sandbox/sandbox.ts";
import { localBackend } from "../sandboxes/local/index.ts";
import { editWorkspaceFile } from "./edit-workspace-file.ts";

let root: string;
let sandbox: Sandbox;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "workspace-"));
  sandbox = await localBackend.open({ workingDir: root });
});

afterEach(async () => {
  await sandbox.close();
  await rm(root, { recursive: true, force: true });
});

test("replaces the only occurrence of the old text", async () => {
  expect(await edit("one\ntwo\nthree\n", { old_text: "two", new_text: "2" })).toEqual({
    text: "one\n2\nthree\n",
    answer: { path: "a.txt", replacements: 1, first_line: 2 },
  });
});

test("inserts the new text literally", async () => {
  expect(await edit("price: X", { old_text: "X", new_text: "$& $1 $$" })).toMatchObject({ text: "price: $& $1 $$" });
});

test("removes the old text if the new one is empty", async () => {
  expect(await edit("a, b, c", { old_text: ", b", new_text: "" })).toMatchObject({ text: "a, c" });
});

test("refuses an old text that occurs more than once, lists the occurrences, and does not change the file", async () => {
  const text = "x = 1\ny = 1\n";
  expect(await refusal(text, { old_text: " = 1", new_text: " = 2" })).toBe(
    'old_text occurs 2 times in "a.txt", at the lines 1, 2. ' +
      "Add the lines around it until it occurs once, or set replace_all.",
  );
  expect(await readFile(join(root, "a.txt"), "utf8")).toBe(text);
});

test("refuses overlapping occurrences of the old text, because it is unclear which one is meant", async () => {
  expect(await refusal("aaa", { old_text: "aa", new_text: "b" })).toContain("occurs 2 times");
});

test("replaces every occurrence when asked to", async () => {
  expect(await edit("aaaaa b aa", { old_text: "aa", new_text: "c", replace_all: true })).toEqual({
    text: "cca b c",
    answer: { path: "a.txt", replacements: 3, first_line: 1 },
  });
});

test("replaces the same occurrences as split and join, in any text", async () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "\n", "\r\n", "😀", "$"), maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(letters, letters, letters, async (text, old_text, new_text) => {
      fc.pre(old_text !== "" && old_text !== new_text && text.includes(old_text));
      // Texts in which all lines end in \r\n have a rule that is tested below.
      fc.pre(!text.includes("\r\n") || /(?<!\r)\n/.test(text));
      const edited = await edit(text, { old_text, new_text, replace_all: true });
      expect(edited.text).toBe(text.split(old_text).join(new_text));
    }),
    { numRuns: 60 },
  );
});

test("keeps the line endings and the byte order mark of a file", async () => {
  const edited = await edit("\ufeffone\r\ntwo\r\nthree\r\n", { old_text: "one\ntwo", new_text: "1\n2\n2.5" });
  expect(edited.text).toBe("\ufeff1\r\n2\r\n2.5\r\nthree\r\n");
  expect(await edit("a\r\nb\r\n", { old_text: "b", new_text: "b\nc" })).toMatchObject({ text: "a\r\nb\r\nc\r\n" });
  expect(await edit("a\r\nb\n", { old_text: "b", new_text: "b\nc" })).toMatchObject({ text: "a\r\nb\nc\n" });
});

test("shows the most similar lines if the old text does not occur", async () => {
  const text = [
    "import { a } from './a';",
    "",
    "export function total(items) {",
    "\treturn items.reduce((sum, item) => sum + item.price, 0);",
    "}",
  ].join("\n");
  const old_text = "export function total(items) {\n  return items.reduce((sum, item) => sum + item.cost, 0);";
  expect(await refusal(text, { old_text, new_text: "" })).toBe(
    'old_text was not found in "a.txt". Copy it exactly, with its whitespace. ' +
      "The nearest lines, with their numbers, are:\n" +
      "3: export function total(items) {\n" +
      "4: \treturn items.reduce((sum, item) => sum + item.price, 0);",
  );
});

test("chooses among equally similar lines those with the right neighbours", async () => {
  const text = "alpha:\n  value = compute()\nbeta:\n  value = compute()\n";
  const said = await refusal(text, { old_text: "beta:\n value = compute()", new_text: "" });
  expect(said).toContain("3: beta:\n4:   value = compute()");
});

test("reports if nothing in the file is similar to the old text", async () => {
  expect(await refusal("0123456789\n", { old_text: "completely different", new_text: "" })).toContain(
    "Nothing in the file looks like it; read the file first.",
  );
  expect(await refusal("", { old_text: "anything", new_text: "" })).toContain("read the file first");
});

test("refuses an edit that changes nothing, and a file that is not text", async () => {
  expect(await refusal("a", { old_text: "a", new_text: "a" })).toContain("nothing would change");
  await writeFile(join(root, "b.bin"), Buffer.from([0xff, 0xfe, 0x41]));
  const context = contextOf();
  await expect(editWorkspaceFile.execute({ path: "b.bin", old_text: "A", new_text: "B" }, context)).rejects.toThrow(
    '"b.bin" is not a UTF-8 text file',
  );
});

test("passes on that the file does not exist", async () => {
  const editing = editWorkspaceFile.execute({ path: "none", old_text: "A", new_text: "B" }, contextOf());
  await expect(editing).rejects.toMatchObject({ kind: "file_not_found" });
});

interface Edit {
  readonly old_text: string;
  readonly new_text: string;
  readonly replace_all?: boolean;
}

async function edit(text: string, args: Edit): Promise<{ text: string; answer: unknown }> {
  await writeFile(join(root, "a.txt"), text);
  const answer = await editWorkspaceFile.execute({ path: "a.txt", ...args }, contextOf());
  return { text: await readFile(join(root, "a.txt"), "utf8"), answer };
}

async function refusal(text: string, args: Edit): Promise<string> {
  return edit(text, args).then(
    () => "",
    (error: Error) => error.message,
  );
}

function contextOf(): ToolContext {
  const { signal } = new AbortController();
  return {
    sandbox,
    requireSandbox: async () => sandbox,
    signal,
    callId: "call",
    runId: "run",
  } as unknown as ToolContext;
}
