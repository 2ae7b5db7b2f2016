import { expect, test } from "vitest";
import { FOREIGN_FORMATS, foreignFormat, writeForeign } from "../../src/interop/formats/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { textOf } from "../../src/session/message.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { SessionTree } from "../../src/tree/session-tree.ts";
import { assistant, call, result, user } from "../sample-log.ts";
import { writtenText } from "./foreign-samples.ts";

test.for(FOREIGN_FORMATS.map(({ name }) => name))(
  "%s gets the messages of a session as models see them, and the report counts what edits changed",
  async (name) => {
    const store = openMemoryStore();
    await store.create(createHeader({ id: "0190a0a0-0000-7000-8000-000000000001", cwd: "/work" }));
    const tree = await SessionTree.on(store, "0190a0a0-0000-7000-8000-000000000001");
    const said = {
      q: user("the question"),
      c: assistant("I look.", { toolCalls: [call("x", "bash", "{}")] }),
      r: result("x", "a secret log"),
    };
    for (const [id, message] of Object.entries(said)) await tree.appendMessage(message, { id });
    await tree.appendMessage(assistant("the answer"), { id: "a" });
    await tree.appendMessage(user("a long question"), { id: "l" });
    await tree.appendMessage(assistant("the end"), { id: "e" });
    await tree.omit("r");
    await tree.replace("l", user("a short one"));
    const format = foreignFormat(name);
    const { pieces, report } = await writeForeign(format, store, tree.id);
    let text = "";
    for await (const piece of pieces) text += piece;
    expect(text).not.toMatch(/a secret log|I look|a long question/);
    expect(Object.fromEntries(report.omitted)).toMatchObject({
      "message that an edit leaves out": 1,
      "text before an edit": 1,
    });
    expect(text).toContain("a short one");
    expect((await tree.buildContext()).messages.map(({ content }) => textOf(content))).toEqual([
      "the question",
      "the answer",
      "a short one",
      "the end",
    ]);
    await tree.undoEdit((await tree.entries()).at(-2)?.id ?? "");
    expect(await writtenText(format, store, tree.id)).toContain("a secret log");
  },
);

test("pi gets messages as they were said, and edits as its own below the leaf, if they are to be kept", async () => {
  const store = openMemoryStore();
  const id = "0190a0a0-0000-7000-8000-000000000002";
  await store.create(createHeader({ id, cwd: "/work" }));
  const tree = await SessionTree.on(store, id);
  const calls = [call("x", "bash", "{}"), call("y", "bash", "{}")];
  await tree.appendMessage(user("the question"), { id: "q" });
  await tree.appendMessage(assistant("I look.", { toolCalls: calls }), { id: "c" });
  await tree.appendMessage(result("x", "a long log"), { id: "r" });
  await tree.appendMessage(result("y", "another log"), { id: "s" });
  await tree.appendMessage(assistant("the answer"), { id: "a" });
  await tree.appendMessage(user("left out"), { id: "l" });
  await tree.appendMessage(assistant("the end"), { id: "e" });
  await tree.replace("r", result("x", "a short log"));
  await tree.omit("l");
  await tree.undoEdit((await tree.replace("q", user("not this"))).id);
  const pi = foreignFormat("pi");
  const { pieces, report } = await writeForeign(pi, store, id, { edits: "keep" });
  const lines: Record<string, unknown>[] = [];
  for await (const piece of pieces)
    for (const line of piece.trim().split("\n")) lines.push(JSON.parse(line) as Record<string, unknown>);
  expect(JSON.stringify(lines.filter(({ type }) => type === "message"))).toMatch(/a long log.*left out/s);
  expect(lines.slice(-2)).toMatchObject([
    {
      type: "context_edit",
      parentId: "e",
      targetId: "r",
      replacement: { content: [{ type: "text", text: "a short log" }] },
    },
    { type: "context_edit", parentId: lines.at(-2)?.["id"], targetId: "l", replacement: null },
  ]);
  expect([...report.omitted.keys()]).toEqual([]);
  // A call goes together with its results, of which pi knows nothing.
  await tree.omit("s");
  const again = await writeForeign(pi, store, id, { edits: "keep" });
  let text = "";
  for await (const piece of again.pieces) text += piece;
  const targets = [...text.matchAll(/"targetId":"(.)","replacement":null/g)].map(([, target]) => target);
  expect(targets).toEqual(["c", "r", "s", "l"]);
  // Other programs have no edits: their files have the edited text, and the report says so.
  const codex = await writeForeign(foreignFormat("codex"), store, id, { edits: "keep" });
  for await (const piece of codex.pieces) expect(piece).not.toContain("left out");
  expect(codex.report.omitted.get("message that an edit leaves out")).toBe(2);
});
