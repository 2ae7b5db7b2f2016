import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { asking, callOf, calling, someAgent } from "../../../test/sample-run.ts";
import { runSessionLoop } from "../../agent/run-session-loop.ts";
import type { Tool, ToolContent, ToolContext } from "../../agent/tools/tool.ts";
import type { AskPolicy } from "../../agent/tools/ask-policy.ts";
import { scripted } from "../../models/scripted.ts";
import { Session } from "../../session/value/session.ts";
import { type McpTools, openMcpTools } from "./index.ts";

const program = join(dirname(fileURLToPath(import.meta.url)), "../../../test/mcp-server.mjs");

let directory: string;
let notes: string;
let server: McpTools;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-mcp-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));
beforeEach(async (context) => {
  notes = join(directory, `${context.task.id}.txt`);
  server = await openMcpTools({ command: process.execPath, args: [program], env: { MCP_TEST_NOTES: notes } });
});
afterEach(() => server.close());

describe("the tools of a program", () => {
  test("are listed over all pages, with their schemas", () => {
    expect(server.tools.map(({ schema }) => schema.name)).toEqual(
      expect.arrayContaining(["echo", "large", "wait", "grow", "crash"]),
    );
    expect(named("echo").schema).toEqual({
      name: "echo",
      description: "Does echo.",
      parameters: { type: "object", properties: {}, additionalProperties: true },
    });
    expect(server.refused).toEqual([]);
  });

  test("answer with plain text, or with parts if there is more than text", async () => {
    expect(await call("echo", { text: "grüße\n" })).toEqual({ content: "grüße\n" });
    expect(await call("picture")).toEqual({
      content: [
        { type: "text", text: "a picture" },
        { type: "image", mediaType: "image/png", data: "iVBORw0KGgo=" },
        { type: "file", mediaType: "audio/wav", data: "iVBORw0KGgo=" },
        { type: "text", text: "file:///notes.txt:\n\nthe notes" },
        { type: "file", mediaType: "application/zip", data: "iVBORw0KGgo=", name: "file:///all.zip" },
        { type: "text", text: "more: https://example.com/more" },
      ],
    });
  });

  test("show structured content as JSON, once", async () => {
    expect(await call("structured")).toEqual({ content: '{"degrees":21}' });
    expect(await call("twice")).toEqual({ content: '{"degrees":21}' });
    expect(await call("silent")).toEqual({ content: '{"ok":true}' });
  });

  test("mark a failure that the server reports, with its message", async () => {
    expect(await call("fail")).toEqual({ content: "no such order", isError: true });
    const crashed = await call("crash");
    expect(crashed.isError).toBe(true);
    expect(JSON.parse(crashed.content as string)).toMatchObject({
      ok: false,
      error_kind: "tool_execution_exception",
      message: expect.stringContaining("out of order"),
    });
  });

  test("return an answer of more than ten megabytes, and omit an image that is too large for a session", async () => {
    const large = await call("large");
    expect((large.content as string).length).toBe(12_000_003);
    expect((large.content as string).endsWith("xend")).toBe(true);
    expect(await call("wide")).toEqual({
      content: "kept\n[image/png of 9000000 base64 characters was left out.]",
    });
  });

  test("accept only an object as arguments", async () => {
    expect(await named("echo").check({ text: "hi" })).toEqual({ ok: true, value: { text: "hi" } });
    for (const args of [null, "text", 1, ["list"], undefined]) {
      expect(await named("echo").check(args)).toEqual({ ok: false, problem: "The arguments must be a JSON object." });
    }
  });
});

describe("a server's annotations of its own tools", () => {
  /** `echo` is annotated as read-only, `silent` as idempotent and not destructive, `fail` not at all. */
  const names = ["echo", "silent", "fail"];
  const askedIn = async (tools: readonly Tool[], ask?: AskPolicy): Promise<string[]> => {
    const calls = names.map((name) => callOf(name, name, { text: "hi" }));
    const options = { model: scripted([calling(...calls), "Done."]), tools, ...(ask && { ask }) };
    const run = runSessionLoop(asking(), someAgent(), options);
    const asked: string[] = [];
    for await (const event of run) {
      if (event.type !== "approval-required") continue;
      expect(event.approval).toMatchObject({ reach: null });
      asked.push(event.approval.name);
      await run.deny(event.approval.callId);
    }
    await run;
    return asked;
  };

  test("are ignored: every tool needs approval, unless the run allows everything", async () => {
    for (const ask of [undefined, "always", "writes", "commands"] as const) {
      expect(await askedIn(server.tools, ask)).toEqual(names);
    }
    expect(await askedIn(server.tools, "never")).toEqual([]);
  });

  test("are ignored after a crash, too: a call that may have had its effect is not sent again", () => {
    expect(server.tools.filter(({ idempotent }) => idempotent)).toEqual([]);
    expect(server.tools.map(({ effects }) => effects)).toEqual(server.tools.map(() => undefined));
  });

  test("are overridden by `trust`, by the server's tool names", async () => {
    const trust = { echo: "reads", silent: "writes", toString: "reads" } as const;
    const opened = { command: process.execPath, args: [program] };
    await using trusted = await openMcpTools(opened, { trust, prefix: "my_" });
    const tools = trusted.tools.map((tool) => ({
      ...tool,
      schema: { ...tool.schema, name: tool.schema.name.slice("my_".length) },
    }));
    expect(await askedIn(tools)).toEqual(["fail"]);
    expect(await askedIn(tools, "commands")).toEqual(["fail"]);
    expect(await askedIn(tools, "writes")).toEqual(["silent", "fail"]);
    expect(await askedIn(tools, "always")).toEqual(names);
    expect(tools.filter(({ idempotent }) => idempotent).map(({ schema }) => schema.name)).toEqual(["echo"]);
    await using prefixed = await openMcpTools(opened, { trust: { my_echo: "reads" }, prefix: "my_" });
    expect(prefixed.tools.every(({ untrusted }) => untrusted === true)).toBe(true);
  });
});

describe("a call that goes wrong", () => {
  test("fails soon when the program is killed in the middle of it, and so does every later one", async () => {
    const pid = Number((await call("pid")).content);
    const waiting = call("wait");
    await noted("waiting");
    process.kill(pid, "SIGKILL");
    const answer = await waiting;
    expect(answer.isError).toBe(true);
    expect(JSON.parse(answer.content as string)).toEqual({
      ok: false,
      error_kind: "tool_execution_exception",
      message: 'The MCP server did not answer the call of "wait": the server closed the connection.',
    });
    expect((await call("echo", { text: "still there?" })).isError).toBe(true);
    await expect(server.refresh()).rejects.toMatchObject({ code: "INVALID_TOOL" });
  });

  test("is cancelled on the server when it is aborted, and rejects with the reason", async () => {
    const abort = new AbortController();
    const waiting = call("wait", {}, abort.signal);
    await noted("waiting");
    abort.abort(new Error("the user went away"));
    await expect(waiting).rejects.toThrow("the user went away");
    await noted("cancelled");
    expect((await call("echo", { text: "next" })).content).toBe("next");
  });

  test("is not sent when it was aborted before", async () => {
    const reason = new Error("too late");
    await expect(call("wait", {}, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(await readNotes()).toBe("");
  });

  test("ends with a timeout, and is cancelled on the server", async () => {
    await server.close();
    const opened = { command: process.execPath, args: [program], env: { MCP_TEST_NOTES: notes } };
    server = await openMcpTools(opened, { timeoutMs: 500 });
    const answer = await call("wait");
    expect(JSON.parse(answer.content as string)).toMatchObject({ ok: false, error_kind: "timeout" });
    await noted("cancelled");
  });
});

describe("opening and changing", () => {
  test("applies a change that the server announces, and does not change an older list", async () => {
    const before = server.tools;
    let tell: (tools: readonly Tool[]) => void = () => {};
    const told = new Promise<readonly Tool[]>((resolve) => {
      tell = resolve;
    });
    await using other = await openMcpTools({ command: process.execPath, args: [program] }, { onChanged: tell });
    await other.tools.find(({ schema }) => schema.name === "grow")?.execute({}, contextOf());
    expect((await told).map(({ schema }) => schema.name)).toContain("grown-1");
    expect(other.tools).toBe(await told);
    await call("grow");
    expect((await server.refresh()).map(({ schema }) => schema.name)).toContain("grown-1");
    expect(before.map(({ schema }) => schema.name)).not.toContain("grown-1");
  });

  test.for<[trust: unknown]>([[["echo"]], ["all"], [null], [{ echo: "harmless" }], [{ echo: true }]])(
    "refuses a trust that is none: %j",
    async ([trust]) => {
      const opening = openMcpTools({ command: process.execPath, args: [program] }, { trust: trust as never });
      await expect(opening).rejects.toMatchObject({
        code: "INVALID_OPTION",
        message: expect.stringMatching(/^trust /),
      });
    },
  );

  test("ends the program on close", async () => {
    const pid = Number((await call("pid")).content);
    await server.close();
    await server.close();
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });

  test("names a program that does not start, with its error output", async () => {
    await expect(openMcpTools({ command: "no-such-program-anywhere" })).rejects.toMatchObject({
      code: "INVALID_TOOL",
      message: expect.stringMatching(
        /^The MCP server "no-such-program-anywhere" does not answer: .*(ENOENT|EACCES).*\.$/,
      ),
    });
    await expect(openMcpTools({ command: process.execPath, args: [program, "--broken"] })).rejects.toMatchObject({
      code: "INVALID_TOOL",
      message: expect.stringContaining("no configuration found"),
    });
  });
});

function named(name: string): Tool {
  const tool = server.tools.find(({ schema }) => schema.name === name);
  if (tool === undefined) throw new Error(`there is no tool ${name}`);
  return tool;
}

async function call(name: string, args: object = {}, signal?: AbortSignal): Promise<ToolContent> {
  return (await named(name).execute(args, contextOf(signal))) as ToolContent;
}

function contextOf(signal: AbortSignal = new AbortController().signal): ToolContext {
  const session = Session.fromUserMessage("hello");
  return {
    session,
    sandbox: null,
    requireSandbox: () => session.requireSandbox(),
    signal,
    callId: "1",
    runId: "r",
    leaseToken: null,
  };
}

async function readNotes(): Promise<string> {
  return readFile(notes, "utf8").catch(() => "");
}

async function noted(line: string): Promise<void> {
  while (!(await readNotes()).includes(`${line}\n`)) await delay(10);
}
