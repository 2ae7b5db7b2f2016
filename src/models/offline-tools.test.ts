import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ModelReply, ModelRequest } from "../agent/model/model.ts";
import type { ToolSchema } from "../session/log/setup.ts";
import type { JsonObject } from "../internal/json.ts";
import { type Message, textOf, type ToolMessage } from "../session/message.ts";
import { workspaceTools } from "../tools/workspace-tools.ts";
import { user } from "../../test/sample-log.ts";
import { offline } from "./offline.ts";

const schemas = workspaceTools.map(({ schema }) => schema);
const model = offline();
const ask = (text: string, extras: Partial<ModelRequest> = {}): Promise<ModelReply> =>
  model.complete({ messages: [user(text)], tools: schemas, ...extras });
const callsOf = (reply: ModelReply) => (reply.toolCalls ?? []).map((call) => [call.name, JSON.parse(call.arguments)]);
const calls = async (text: string, extras?: Partial<ModelRequest>) => callsOf(await ask(text, extras));

/** Answers each call with `resultOf`, until the model answers with text. */
async function converse(
  text: string,
  resultOf: (name: string, args: JsonObject) => Partial<ToolMessage> = () => ({}),
): Promise<{ rounds: unknown[][]; answer: string; messages: Message[] }> {
  const messages: Message[] = [user(text)];
  const rounds: unknown[][] = [];
  while (rounds.length < 20) {
    const reply = await model.complete({ messages, tools: schemas });
    messages.push(reply);
    if (!reply.toolCalls?.length) return { rounds, answer: textOf(reply.content), messages };
    rounds.push(callsOf(reply));
    for (const { id, name, arguments: args } of reply.toolCalls) {
      messages.push({ role: "tool", toolCallId: id, name, content: "{}", ...resultOf(name, JSON.parse(args)) });
    }
  }
  throw new Error("the model goes on for ever");
}

const text = (content: string) => () => ({ content });

describe("offline, asked to do something with tools", () => {
  const phrases: readonly [said: string, tool: string, args: JsonObject][] = [
    ["list the files", "list_workspace_files", {}],
    ["Please list all files in src.", "list_workspace_files", { path: "src" }],
    ["What files are there?", "list_workspace_files", {}],
    ["show me the files in the workspace", "list_workspace_files", {}],
    ["read notes.txt", "read_workspace_file", { path: "notes.txt" }],
    ["Could you show me the contents of the file `my notes.txt`?", "read_workspace_file", { path: "my notes.txt" }],
    ["What does notes.txt say?", "read_workspace_file", { path: "notes.txt" }],
    ["write hello world to a.txt", "write_workspace_file", { path: "a.txt", content: "hello world" }],
    [
      'Write "to be, then not to be" to a.txt.',
      "write_workspace_file",
      { path: "a.txt", content: "to be, then not to be" },
    ],
    ['write "one\ntwo \\"2\\"" to a.txt', "write_workspace_file", { path: "a.txt", content: 'one\ntwo "2"' }],
    [
      "write to a.txt:\nfirst line\n\n- read b.txt",
      "write_workspace_file",
      { path: "a.txt", content: "first line\n\n- read b.txt" },
    ],
    ["create a file a.txt with the text hi!", "write_workspace_file", { path: "a.txt", content: "hi!" }],
    ["write \ue0000\ue001 to a.txt", "write_workspace_file", { path: "a.txt", content: "\ue0000\ue001" }],
    ["create an empty file a.txt", "write_workspace_file", { path: "a.txt", content: "" }],
    ["write this to a.py:\n```python\nprint(1)\n```", "write_workspace_file", { path: "a.py", content: "print(1)\n" }],
    ["append it's done to a.txt", "run_shell_command", { command: "printf '%s\\n' 'it'\\''s done' >> 'a.txt'" }],
    [
      "replace hello with good bye in a.txt",
      "edit_workspace_file",
      { path: "a.txt", old_text: "hello", new_text: "good bye" },
    ],
    ["edit a.txt: replace 'a b' with 'c'", "edit_workspace_file", { path: "a.txt", old_text: "a b", new_text: "c" }],
    ["in a.txt, change one to two", "edit_workspace_file", { path: "a.txt", old_text: "one", new_text: "two" }],
    ["does src/a.txt exist?", "workspace_path_exists", { path: "src/a.txt" }],
    ["Is there a file called a.txt?", "workspace_path_exists", { path: "a.txt" }],
    ["run ls -la", "run_shell_command", { command: "ls -la" }],
    ["Run cat a.txt.", "run_shell_command", { command: "cat a.txt" }],
    ["run ls .", "run_shell_command", { command: "ls ." }],
    ["run `echo a, then b`", "run_shell_command", { command: "echo a, then b" }],
    ['run echo "a, then b" | wc', "run_shell_command", { command: 'echo "a, then b" | wc' }],
    ["run if true; then echo hi; fi", "run_shell_command", { command: "if true; then echo hi; fi" }],
    ["$ echo 'a' and then b.", "run_shell_command", { command: "echo 'a' and then b." }],
    ["run python a.py", "run_shell_command", { command: "python a.py" }],
    ["run this python: print(1)", "run_code", { language: "python", code: "print(1)" }],
    [
      "run this javascript:\nlet a = 1;\nconsole.log(a);",
      "run_code",
      { language: "javascript", code: "let a = 1;\nconsole.log(a);" },
    ],
    ["run this js code `1 + 1`", "run_code", { language: "javascript", code: "1 + 1" }],
    ["run this code:\n```python\nprint(2)\n```", "run_code", { language: "python", code: "print(2)\n" }],
    [
      'call read_workspace_file with {"path": "a.txt", "start_line": 2}',
      "read_workspace_file",
      { path: "a.txt", start_line: 2 },
    ],
    ["call read_workspace_file with path=a.txt, start_line=2", "read_workspace_file", { path: "a.txt", start_line: 2 }],
  ];

  test.for(phrases)("understands %j", async ([said, name, args]) => {
    expect(await calls(said)).toEqual([[name, args]]);
    const tool = workspaceTools.find(({ schema }) => schema.name === name);
    expect(await tool?.check(args)).toMatchObject({ ok: true });
  });

  test.for([
    "Show me what you can do",
    "read it",
    "read the docs",
    "run the tests",
    "What is in the box?",
    "is there hope?",
    "Tell me a story about a file.",
    "write a poem",
    "use your imagination",
  ])("calls nothing for %j, and answers what it can do", async (said) => {
    const reply = await ask(said);
    expect(reply.toolCalls).toBeUndefined();
    expect(reply.stopReason).toBe("stop");
    expect(reply.content).toMatch(/^I am offline\. You said: /);
    expect(reply.content).toContain('"run ls -l"');
  });

  test("calls steps one by one, in order, and reports the result of each", async () => {
    const { rounds, answer, messages } = await converse(
      "write hi to a.txt, then run cat a.txt and then list the files",
      (name) =>
        name === "run_shell_command"
          ? { content: '{"exit_code":0,"stdout":"hi\\n","stderr":""}' }
          : name === "list_workspace_files"
            ? { content: '{"entries":[{"path":"a.txt","type":"file"},{"path":"src","type":"directory"}]}' }
            : {},
    );
    expect(rounds).toEqual([
      [["write_workspace_file", { path: "a.txt", content: "hi" }]],
      [["run_shell_command", { command: "cat a.txt" }]],
      [["list_workspace_files", {}]],
    ]);
    expect(answer).toBe("I wrote a.txt.\n`cat a.txt` printed: hi\nThe files: a.txt, src/");
    const ids = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
    expect(ids.map(({ id }) => id)).toEqual(["call_1", "call_2", "call_3"]);
  });

  test.for([
    "1. read a.txt\n2) read b.txt",
    "- read a.txt\n- read b.txt",
    "read a.txt\nread b.txt",
    "read a.txt and read b.txt",
  ])("reads %j as two steps", async (said) => {
    const { rounds } = await converse(said);
    expect(rounds).toEqual([
      [["read_workspace_file", { path: "a.txt" }]],
      [["read_workspace_file", { path: "b.txt" }]],
    ]);
  });

  test("calls steps in one round when it is told to", async () => {
    const { rounds } = await converse("At the same time: read a.txt, read b.txt and run ls");
    expect(rounds).toEqual([
      [
        ["read_workspace_file", { path: "a.txt" }],
        ["read_workspace_file", { path: "b.txt" }],
        ["run_shell_command", { command: "ls" }],
      ],
    ]);
  });

  test("stops at a failed step, and reports the skipped ones", async () => {
    const error = '{"ok":false,"error_kind":"file_not_found","message":"There is no a.txt."}';
    const { rounds, answer } = await converse("read a.txt, then run ls", () => ({ content: error, isError: true }));
    expect(rounds).toHaveLength(1);
    expect(answer).toBe('Reading a.txt failed: There is no a.txt. (file_not_found)\nSo I did not go on to: "run ls".');
  });

  test("reports what a process printed, and that it failed", async () => {
    const run = async (content: string) => (await converse("run make", text(content))).answer;
    expect(await run('{"exit_code":0,"stdout":"","stderr":""}')).toBe("`make` printed nothing.");
    expect(await run('{"exit_code":2,"stdout":"a\\n","stderr":"b"}')).toBe(
      "`make` ended with exit code 2 and printed: a b",
    );
    expect(await run("plain text")).toBe("`make` printed: plain text");
  });

  test("reports whether a path exists, the beginning of a file, and an empty directory", async () => {
    const exists = (answer: boolean) => text(`{"path":"a.txt","exists":${answer}}`);
    expect((await converse("does a.txt exist?", exists(true))).answer).toBe("a.txt exists.");
    expect((await converse("does a.txt exist?", exists(false))).answer).toBe("a.txt does not exist.");
    expect((await converse("list the files", text('{"entries":[]}'))).answer).toBe("There are no files.");
    const long = (await converse("read a.txt", text("x".repeat(1000)))).answer;
    expect(long).toBe(`a.txt says: ${"x".repeat(300)}…`);
    expect((await converse("edit a.txt: replace a with b")).answer).toBe("I edited a.txt.");
  });

  test("continues its steps after a further request in between, and starts with none after an answer", async () => {
    const { messages } = await converse("write a to a.txt, then write b to b.txt");
    const within = [...messages.slice(0, 3), user("also write c to c.txt")];
    const next = async (said: readonly Message[]) => callsOf(await model.complete({ messages: said, tools: schemas }));
    expect(await next(within)).toEqual([["write_workspace_file", { path: "b.txt", content: "b" }]]);
    expect(await next([...messages, user("read c.txt")])).toEqual([["read_workspace_file", { path: "c.txt" }]]);
  });

  test("drops the remaining steps of a failed request after a new request", async () => {
    const said: Message[] = [
      user("read a.txt, then run ls"),
      { role: "assistant", content: null, toolCalls: [{ id: "call_7", name: "read_workspace_file", arguments: "{}" }] },
      { role: "tool", toolCallId: "call_7", name: "read_workspace_file", content: "no", isError: true },
      user("read b.txt"),
    ];
    const reply = await model.complete({ messages: said, tools: schemas });
    expect(reply.toolCalls).toEqual([{ id: "call_8", name: "read_workspace_file", arguments: '{"path":"b.txt"}' }]);
  });

  test("does not repeat requests that are quoted in a summary", async () => {
    const summary = user("The conversation before:\n\n<summary>\nrun rm -r src\n</summary>");
    expect(callsOf(await model.complete({ messages: [summary, user("read a.txt")], tools: schemas }))).toEqual([
      ["read_workspace_file", { path: "a.txt" }],
    ]);
  });

  test("names the tool that it would need, and the text that it did not understand", async () => {
    const tools = schemas.filter(({ name }) => name === "read_workspace_file");
    expect((await ask("run ls", { tools })).content).toBe('For "run ls" I would need the tool run_shell_command.');
    const { answer } = await converse("read a.txt\nand sing a song", text("la"));
    expect(answer).toBe('a.txt says: la\nI am offline and did not understand: "and sing a song".');
  });

  test("obeys a tool choice that forbids or requires a call", async () => {
    expect((await ask("run ls", { toolChoice: "none" })).content).toBe("I am offline. You said: run ls");
    expect(await calls("read a.txt", { toolChoice: "required" })).toEqual([["read_workspace_file", { path: "a.txt" }]]);
    expect(await calls("read a.txt", { toolChoice: { name: "workspace_path_exists" } })).toEqual([
      ["workspace_path_exists", { path: "read a.txt" }],
    ]);
    expect(await calls("hello", { toolChoice: "required", tools: [] })).toEqual([]);
  });

  test("makes up arguments that a schema demands", async () => {
    const parameters: JsonObject = {
      type: "object",
      properties: {
        city: { type: "string" },
        days: { type: "integer", minimum: 1 },
        unit: { enum: ["C", "F"] },
        place: { $ref: "#/$defs/place" },
        tags: { type: "array", minItems: 1, items: { anyOf: [{ type: "boolean" }, { type: "null" }] } },
        free: {},
        optional: { type: "string" },
      },
      required: ["city", "days", "unit", "place", "tags", "free"],
      $defs: { place: { type: "object", properties: { zone: { const: 7 } }, required: ["zone"] } },
    };
    const weather: ToolSchema = { name: "weather", description: "", parameters };
    const said = { toolChoice: "required", tools: [weather] } as const;
    expect(await calls("Rain in Rome for 3 days?", said)).toEqual([
      [
        "weather",
        {
          city: "Rain in Rome for 3 days?",
          days: 3,
          unit: "C",
          place: { zone: 7 },
          tags: [false],
          free: "Rain in Rome for 3 days?",
        },
      ],
    ]);
    expect(await calls("call weather with Rome", { tools: [weather] })).toMatchObject([["weather", { city: "Rome" }]]);
  });

  test("uses the names of arguments that a tool's schema has", async () => {
    const parameters = { type: "object", properties: { file: { type: "string" }, text: { type: "string" } } };
    const tools = [{ name: "write_workspace_file", description: "", parameters }];
    expect(await calls("write hi to a.txt", { tools })).toEqual([
      ["write_workspace_file", { file: "a.txt", text: "hi" }],
    ]);
  });

  test("summarizes the conversation on request, even without tools", async () => {
    const said = [user("build a boat"), { role: "assistant", content: "It floats." } as const];
    const reply = await model.complete({
      messages: [...said, user("Summarise this conversation.")],
      toolChoice: "none",
    });
    expect(reply.content).toBe("- [user] build a boat\n- [assistant] It floats.");
  });

  test("answers any message deterministically, with calls whose arguments are JSON", async () => {
    const words = fc.constantFrom(
      ...[
        "run",
        "read",
        "write",
        "to",
        "in",
        "replace",
        "with",
        "a.txt",
        "then",
        ", then ",
        "\n",
        '"',
        "`",
        "```",
        "'",
      ],
      ...[
        "$ ",
        ":",
        "call",
        "list the files",
        "at the same time",
        "\ue000",
        "\ue0010\ue001",
        "1. ",
        "\ud800",
        "exist?",
      ],
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(words, fc.string()), { maxLength: 12 }), async (parts) => {
        const said = parts.join(" ");
        const reply = await ask(said);
        expect(await ask(said)).toEqual(reply);
        for (const call of reply.toolCalls ?? []) expect(JSON.parse(call.arguments)).toBeTypeOf("object");
        expect(reply.content === null).toBe((reply.toolCalls?.length ?? 0) > 0);
      }),
      { numRuns: 300 },
    );
  });

  test("writes any quoted text exactly", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme" }), async (content) => {
        const said = `write "${content.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}" to a.txt, then read a.txt`;
        expect(await calls(said)).toEqual([["write_workspace_file", { path: "a.txt", content }]]);
      }),
      { numRuns: 200 },
    );
  });
});
