import { expect, test } from "vitest";
import type { ToolSchema } from "../session/log/setup.ts";
import { type AssistantMessage, textOf } from "../session/message.ts";
import { workspaceTools } from "../tools/workspace-tools.ts";
import { offline } from "./offline.ts";

const CHARACTERS = 49_000;
const look: ToolSchema = {
  name: "look",
  description: "Looks.",
  parameters: { type: "object", properties: { at: { type: "string" } } },
};
const tools = [look, ...workspaceTools.map(({ schema }) => schema)];

const repeat = (unit: string): string => unit.repeat(CHARACTERS / unit.length);
const verbs = ["read", "write", "replace a with b in", "change", "append", "does", "is there", "check whether", "list"];

// The last one is longer than the text that is parsed.
test.for([
  `hi${repeat(" ")}`,
  `hi${repeat(" ")}at the same tim`,
  `hi${repeat("\n")}x`,
  `please${repeat(" please")}`,
  ...verbs.map((verb) => `${verb}${repeat(" ")}x`),
  ...verbs.map((verb) => repeat(`${verb} `)),
  ...verbs.map((verb) => repeat(`${verb}${" ".repeat(3000)}x\n`)),
  ...verbs.map((verb) => repeat(`${verb} ${"x with y in ".repeat(300)}!\n`)),
  repeat("a\n"),
  repeat("a:\n"),
  repeat("1. "),
  repeat("“"),
  repeat('"'),
  `"${repeat('\\"')}`,
  repeat("'a "),
  repeat("`"),
  repeat("```"),
  repeat("```a "),
  `\`\`\`a\n${repeat("```b ")}`,
  repeat("\ue000"),
  repeat("\ue0000\ue001"),
  repeat("give me a "),
  repeat("summar"),
  repeat("<earlier-summary>\n"),
  `<conversation>\n${repeat("<earlier-summary>\n")}\n</conversation>`,
  `<conversation>\n${repeat("\n</conversation")}`,
  `write to a.txt:\n${repeat("a:\n")}`,
  `call look with ${repeat("a")}`,
  repeat(`call look with ${"a".repeat(3900)}\n`),
  repeat(", and then "),
  repeat(" and read "),
  repeat(".!? "),
  repeat("read a.txt, then ").repeat(80),
])("answers a text of 49,000 characters quickly, whatever it contains: %$", { timeout: 20_000 }, async (content) => {
  const reply = await offline().complete({ messages: [{ role: "user", content }], tools });
  expect(textOf(reply.content ?? "").length).toBeLessThan(10_000);
});

test("answers after many unanswered messages in a row", { timeout: 20_000 }, async () => {
  const messages = Array.from({ length: 100 }, () => ({ role: "user", content: "a\n".repeat(5000) }) as const);
  const reply = await offline().complete({ messages, tools });
  expect(textOf(reply.content ?? "").length).toBeLessThan(10_000);
});

test("gives a value of a bounded size in a bounded time, whatever the schema asks for", {
  timeout: 20_000,
}, async () => {
  const slow = { type: "string", pattern: "^(x+)+!$|^(a+)+!$", minLength: 60 };
  const properties = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`p${i}`, slow]));
  const large = { default: Array.from({ length: 50_000 }, () => "x") };
  const lists = (inner: object): object => ({ type: "array", minItems: 1e9, items: inner });
  for (const output of [
    { type: "object", properties, required: Object.keys(properties) },
    lists(lists(lists(lists({ type: "string", minLength: 1e9 })))),
    lists(lists(large)),
    { type: "object", properties: { a: lists(large) }, required: Array.from({ length: 50_000 }, () => "a") },
    { type: "string", enum: Array.from({ length: 100_000 }, (_, i) => `v${i}`) },
  ]) {
    const messages = [{ role: "user", content: "x".repeat(CHARACTERS) } as const];
    const answer: AssistantMessage = await offline().complete({ messages, output: output as never });
    expect(textOf(answer.content ?? "").length).toBeLessThan(2_000_000);
    const tool = { name: "made", description: "Made.", parameters: { type: "object", ...output } as never };
    const asked = [{ role: "user", content: `call made\n${"x".repeat(CHARACTERS)}` } as const];
    const called = await offline().complete({ messages: asked, tools: [tool] });
    expect(called.toolCalls?.[0]?.arguments.length ?? 0).toBeLessThan(2_000_000);
  }
});
