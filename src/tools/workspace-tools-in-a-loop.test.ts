import { expect, test } from "vitest";
import { runSessionLoop } from "../agent/run-session-loop.ts";
import { scripted } from "../models/scripted.ts";
import { localBackend } from "../sandboxes/local/index.ts";
import { type Content, textOf } from "../session/message.ts";
import { Session } from "../session/value/session.ts";
import { workspaceTools } from "../sandboxes/index.ts";

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

test("a model works in a workspace: calls of one round keep their order, and failures are reported by their kinds", async () => {
  await using session = Session.fromUserMessage("Go.").bindSandbox(await localBackend.open({}));
  const results = await answersTo(session, [
    ["write_workspace_file", { path: "./notes.txt", content: "alpha\nbeta\n" }],
    ["edit_workspace_file", { path: "notes.txt", old_text: "beta", new_text: "gamma" }],
    ["read_workspace_file", { path: "notes.txt" }],
    ["run_shell_command", { command: "mv notes.txt moved.txt" }],
    ["workspace_path_exists", { path: "notes.txt" }],
    ["read_workspace_file", { path: "notes.txt" }],
    ["edit_workspace_file", { path: "moved.txt", old_text: "delta", new_text: "x" }],
    ["read_workspace_file", { path: 7 }],
    ["run_code", { language: "javascript", code: "console.log(6 * 7)" }],
  ]);
  expect(results.slice(0, 5).map(textOf)).toEqual([
    '{"path":"./notes.txt","size_bytes":11}',
    '{"path":"notes.txt","replacements":1,"first_line":2}',
    "alpha\ngamma\n",
    '{"exit_code":0,"stdout":"","stderr":""}',
    '{"path":"notes.txt","exists":false}',
  ]);
  expect(results.slice(5, 8).map((content) => JSON.parse(textOf(content)))).toEqual([
    { ok: false, error_kind: "file_not_found", message: expect.any(String) },
    { ok: false, error_kind: "tool_execution_exception", message: expect.stringContaining("old_text was not found") },
    { ok: false, error_kind: "invalid_tool_arguments", message: "arguments.path must be a string, got 7." },
  ]);
  expect(JSON.parse(textOf(results[8] ?? ""))).toEqual({ exit_code: 0, stdout: "42\n", stderr: "" });
});

test("a model sees an image of the workspace", async () => {
  const sandbox = await localBackend.open({});
  await using session = Session.fromUserMessage("Go.").bindSandbox(sandbox);
  await sandbox.writeFile("pixel.png", Buffer.from(pixel, "base64"));
  const [content] = await answersTo(session, [["read_workspace_file", { path: "pixel.png" }]]);
  expect(content).toContainEqual({ type: "image", mediaType: "image/png", data: pixel, name: "pixel.png" });
});

/** The results of tools that a model calls in one round. */
async function answersTo(session: Session, calls: [name: string, args: object][]): Promise<Content[]> {
  const toolCalls = calls.map(([name, args], index) => ({ id: `c${index}`, name, arguments: JSON.stringify(args) }));
  const model = scripted([{ role: "assistant", content: null, toolCalls, stopReason: "tool_calls" }, "Done."]);
  const tools = workspaceTools;
  await using output = await runSessionLoop(session, Session.fromAgentPrompt("Work."), {
    model,
    tools,
    builtInTools: false,
  });
  return output.transcript.rows.flatMap(({ message }) => (message.role === "tool" ? [message.content] : []));
}
