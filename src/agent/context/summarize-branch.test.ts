import { describe, expect, test } from "vitest";
import { assistant, call, result, usage, user } from "../../../test/sample-log.ts";
import { scripted } from "../../models/scripted.ts";
import { type Message, textOf } from "../../session/message.ts";
import { SessionTree } from "../../tree/session-tree.ts";
import { summarizeBranch } from "./summarize-branch.ts";

async function treeOf(messages: Readonly<Record<string, Message>>): Promise<SessionTree> {
  const tree = await SessionTree.inMemory();
  for (const [id, message] of Object.entries(messages)) await tree.appendMessage(message, { id });
  return tree;
}

const story = {
  a: user("the question"),
  b: assistant("the wrong way"),
  c: assistant("deeper", { toolCalls: [call("x", "write_file", '{"path":"f.txt"}')] }),
  d: result("x"),
};

describe("summarizeBranch", () => {
  test("moves the leaf and appends a summary of the left branch from the common ancestor on", async () => {
    const tree = await treeOf(story);
    const model = scripted([{ role: "assistant", content: "it did not work", usage: usage(7), cost: 2 }]);
    const entry = await summarizeBranch(tree, "a", { model, instructions: "In one line." });
    expect(entry).toMatchObject({
      type: "branch_summary",
      parentId: "a",
      fromId: "d",
      summary: "it did not work",
      details: { readFiles: [], modifiedFiles: ["f.txt"] },
      usage: usage(7),
      cost: 2,
    });
    expect(tree.leafId).toBe(entry?.id);
    const asked = textOf(model.requests[0]?.messages.at(-1)?.content ?? null);
    expect(asked).toContain("[assistant] the wrong way");
    expect(asked).toContain("[calls write_file]");
    expect(asked).toContain("a branch that is now left");
    expect(asked).toContain("Also: In one line.");
    expect(asked).not.toContain("the question");
    const texts = (await tree.buildContext()).messages.map((message) => textOf(message.content));
    expect(texts).toEqual(["the question", expect.stringContaining("it did not work")]);
  });

  test("moves to another branch and summarizes only what the two do not share", async () => {
    const tree = await treeOf(story);
    await tree.branch("a");
    await tree.appendMessage(assistant("the other way"), { id: "e" });
    const model = scripted(["s"]);
    const entry = await summarizeBranch(tree, "d", { model });
    expect(entry).toMatchObject({ parentId: "d", fromId: "e" });
    const asked = textOf(model.requests[0]?.messages.at(-1)?.content ?? null);
    expect(asked).toContain("<conversation>\n[assistant] the other way\n</conversation>");
  });

  test("to before the root summarizes everything", async () => {
    const tree = await treeOf(story);
    const model = scripted(["s"]);
    const entry = await summarizeBranch(tree, null, { model });
    expect(entry?.parentId).toBe(null);
    expect(textOf(model.requests[0]?.messages.at(-1)?.content ?? null)).toContain("the question");
  });

  test("only moves the leaf if there is nothing to summarize", async () => {
    const model = scripted([]);
    const tree = await treeOf(story);
    await tree.appendModelChange("p", "m");
    expect(await summarizeBranch(tree, "d", { model })).toBe(null);
    expect(tree.leafId).toBe("d");
    expect(await summarizeBranch(tree, "d", { model })).toBe(null);
    expect(model.requests).toEqual([]);
  });

  test("refuses an unknown entry by name, and leaves the leaf", async () => {
    const tree = await treeOf(story);
    await expect(summarizeBranch(tree, "nowhere", { model: scripted(["s"]) })).rejects.toMatchObject({
      code: "UNKNOWN_ENTRY",
      entryId: "nowhere",
    });
    expect(tree.leafId).toBe("d");
  });

  test("leaves the leaf when the summary fails", async () => {
    const tree = await treeOf(story);
    await expect(summarizeBranch(tree, "a", { model: scripted([""]) })).rejects.toMatchObject({
      code: "SUMMARY_FAILED",
    });
    expect(tree.version).toBe(4);
  });

  test("leaves the leaf when it is aborted, also if the model ignores the signal", async () => {
    const tree = await treeOf(story);
    const controller = new AbortController();
    const deaf = {
      provider: "deaf",
      id: "deaf",
      async complete(): Promise<Extract<Message, { role: "assistant" }>> {
        controller.abort();
        return { role: "assistant", content: "s" };
      },
    };
    await expect(summarizeBranch(tree, "a", { model: deaf, signal: controller.signal })).rejects.toMatchObject({
      name: "AbortError",
    });
    expect(tree.version).toBe(4);
  });
});
