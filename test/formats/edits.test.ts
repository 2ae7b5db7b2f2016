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
