import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseArguments } from "../agent/tools/parse-arguments.ts";
import type { Tool, ToolContext } from "../agent/tools/tool.ts";
import { Session } from "../session/value/session.ts";
import type { Sandbox } from "../session/sandbox/sandbox.ts";
import { localBackend } from "../sandboxes/local/index.ts";
import { STREAM_CHARACTERS_MAX } from "./run-shell-command.ts";
import * as tools from "../sandboxes/index.ts";
import { LISTED_MAX } from "./list-workspace-files.ts";
import { CHARACTERS_MAX, IMAGE_BYTES_MAX, LINES_MAX } from "./read-workspace-file.ts";

let root: string;
let sandbox: Sandbox;
let session: Session;
let abort: AbortController;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "workspace-"));
  sandbox = await localBackend.open({ workingDir: root });
  session = Session.fromUserMessage("Go.").bindSandbox(sandbox);
  abort = new AbortController();
});

afterEach(async () => {
  await session.closeSandbox();
  await rm(root, { recursive: true, force: true });
});

describe("run_shell_command", () => {
  test("returns the exit code and both streams", async () => {
    const answer = await call(tools.runShellCommand, { command: "echo out; echo err >&2; exit 3" });
    expect(answer).toEqual({ exit_code: 3, stdout: "out\n", stderr: "err\n" });
  });

  test("runs in the given directory and reads the given input", async () => {
    await mkdir(join(root, "inner"));
    const answer = await call(tools.runShellCommand, { command: "cat; ls ..", cwd: "inner", stdin: "typed\n" });
    expect(answer).toMatchObject({ exit_code: 0, stdout: "typed\ninner\n" });
  });

  test("shows the beginning and the end of a long output, and a note", async () => {
    const command = `printf begin; head -c ${STREAM_CHARACTERS_MAX * 2} /dev/zero | tr '\\0' x; printf end`;
    const answer = (await call(tools.runShellCommand, { command })) as { stdout: string; truncated?: true };
    expect(answer.truncated).toBe(true);
    expect(answer.stdout).toMatch(/^beginx+\n\[… 30008 characters left out …\]\nx+end$/);
    expect(answer.stdout.length).toBeLessThan(STREAM_CHARACTERS_MAX + 100);
  });

  test("passes on a timeout", async () => {
    const running = call(tools.runShellCommand, { command: "exec sleep 60", timeout_ms: 300 });
    await expect(running).rejects.toMatchObject({ code: "SANDBOX_FAILED", kind: "timeout" });
  });

  test("ends with the run's signal", async () => {
    const running = call(tools.runShellCommand, { command: "touch started; exec sleep 60" });
    await untilThere(join(root, "started"));
    abort.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
  });
});

describe("run_code", () => {
  test("runs a program in a language of the sandbox", async () => {
    const code = "console.log([1, 2, 3].map((n) => n * n).join()); process.exit(4);";
    expect(await call(tools.runCode, { language: "javascript", code })).toEqual({
      exit_code: 4,
      stdout: "1,4,9\n",
      stderr: "",
    });
  });

  test("passes on that a language is missing, and a timeout", async () => {
    await expect(call(tools.runCode, { language: "cobol", code: "STOP RUN." })).rejects.toMatchObject({
      kind: "unsupported",
    });
    const endless = { language: "javascript", code: "setInterval(() => {}, 1000);", timeout_ms: 300 };
    await expect(call(tools.runCode, endless)).rejects.toMatchObject({ kind: "timeout" });
  });
});

describe("read_workspace_file", () => {
  test("returns a text unchanged, without its byte order mark", async () => {
    await writeFile(join(root, "a.txt"), "\ufeffone\r\ntwo – 😀\n");
    expect(await call(tools.readWorkspaceFile, { path: "a.txt" })).toBe("one\r\ntwo – 😀\n");
  });

  test("returns the requested lines, with their numbers and how to read on", async () => {
    await writeFile(join(root, "a.txt"), "1\n2\n3\n4\n5\n");
    const read = (start_line: number, line_count: number) =>
      call(tools.readWorkspaceFile, { path: "a.txt", start_line, line_count });
    expect(await read(2, 2)).toBe("2\n3\n[Lines 2 to 3 of 5. Read on with start_line 4.]");
    expect(await read(4, 9)).toBe("4\n5\n[Lines 4 to 5 of 5. This is the end of the file.]");
    expect(await read(1, 5)).toBe("1\n2\n3\n4\n5\n");
    expect(await read(6, 1)).toBe("[The file ends at line 5; there is no line 6.]");
  });

  test("cuts a file with many lines, and following the notes shows every line once", async () => {
    const lines = Array.from({ length: LINES_MAX * 2 + 7 }, (_, index) => `line ${index + 1}`);
    await writeFile(join(root, "long.txt"), lines.join("\n"));
    expect(await readOn("long.txt")).toEqual(lines);
  });

  test("cuts a file with wide lines at a whole line", async () => {
    const lines = Array.from({ length: 12 }, (_, index) => `${index}`.padEnd(CHARACTERS_MAX / 4, "x"));
    await writeFile(join(root, "wide.txt"), lines.join("\n"));
    expect(await readOn("wide.txt")).toEqual(lines);
  });

  test("cuts a single line that is too long, with a note", async () => {
    await writeFile(join(root, "min.js"), `${"x".repeat(CHARACTERS_MAX * 2)}\nnext`);
    const answer = (await call(tools.readWorkspaceFile, { path: "min.js" })) as string;
    expect(answer.length).toBeLessThan(CHARACTERS_MAX + 300);
    expect(answer).toContain(`Line 1 is cut: it has ${CHARACTERS_MAX * 2} characters`);
    expect(answer).toContain("Read on with start_line 2.");
  });

  test("says that a file is empty", async () => {
    await writeFile(join(root, "empty"), "");
    expect(await call(tools.readWorkspaceFile, { path: "empty" })).toBe("[The file is empty.]");
  });

  test("describes a binary file instead of showing it", async () => {
    await writeFile(join(root, "tool.bin"), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1]));
    await writeFile(join(root, "latin.txt"), Buffer.from([0x63, 0x61, 0x66, 0xe9]));
    expect(await call(tools.readWorkspaceFile, { path: "tool.bin" })).toContain(
      "a binary file: 6 bytes, beginning with 7f 45 4c 46 00 01.",
    );
    expect(await call(tools.readWorkspaceFile, { path: "latin.txt" })).toContain("a binary file: 4 bytes");
  });

  test.for([
    ["image/png", "89504e470d0a1a0a00"],
    ["image/jpeg", "ffd8ffe000104a46"],
    ["image/gif", "4749463839610100"],
    ["image/webp", "524946460c00000057454250"],
  ])("gives an image of the type %s as an image", async ([mediaType, hex]) => {
    const bytes = Buffer.from(hex as string, "hex");
    await mkdir(join(root, "pictures"));
    await writeFile(join(root, "pictures", "shot"), bytes);
    expect(await call(tools.readWorkspaceFile, { path: "pictures/shot" })).toEqual({
      content: [
        { type: "text", text: `[shot: ${mediaType}, ${bytes.length} bytes]` },
        { type: "image", mediaType, data: bytes.toString("base64"), name: "shot" },
      ],
    });
  });

  test("describes an image that is too large to show", async () => {
    await writeFile(join(root, "large.png"), Buffer.from("89504e470d0a1a0a", "hex"));
    await call(tools.runShellCommand, { command: `truncate -s ${IMAGE_BYTES_MAX + 1} large.png` });
    expect(await call(tools.readWorkspaceFile, { path: "large.png" })).toContain(
      "an image (image/png) that is too large to show",
    );
  });

  test("does not show other RIFF files as images", async () => {
    await writeFile(join(root, "sound.wav"), Buffer.from("52494646240800005741564500", "hex"));
    expect(await call(tools.readWorkspaceFile, { path: "sound.wav" })).toContain("a binary file");
  });

  test("passes on that a file does not exist or is not permitted", async () => {
    await expect(call(tools.readWorkspaceFile, { path: "none" })).rejects.toMatchObject({ kind: "file_not_found" });
    await symlink("/etc", join(root, "out"));
    await expect(call(tools.readWorkspaceFile, { path: "out/hosts" })).rejects.toMatchObject({ kind: "not_permitted" });
  });

  async function readOn(path: string): Promise<string[]> {
    const seen: string[] = [];
    for (let start: number | null = 1; start !== null; ) {
      const answer = (await call(tools.readWorkspaceFile, { path, start_line: start })) as string;
      expect(answer.length).toBeLessThan(CHARACTERS_MAX + 200);
      const shown = answer.split("\n");
      const note = shown.pop() ?? "";
      expect(shown.length).toBeLessThanOrEqual(LINES_MAX);
      seen.push(...shown);
      const next = /Read on with start_line (\d+)\./.exec(note)?.[1];
      start = next === undefined ? null : Number(next);
    }
    return seen;
  }
});

describe("write_workspace_file", () => {
  test("creates a file with its parent directories, and replaces one", async () => {
    expect(await call(tools.writeWorkspaceFile, { path: "a/b/c.txt", content: "é" })).toEqual({
      path: "a/b/c.txt",
      size_bytes: 2,
    });
    await call(tools.writeWorkspaceFile, { path: "a/b/c.txt", content: "new" });
    expect(await readFile(join(root, "a/b/c.txt"), "utf8")).toBe("new");
  });

  test("writes nothing once the run is aborted", async () => {
    abort.abort(new Error("enough"));
    await expect(call(tools.writeWorkspaceFile, { path: "a.txt", content: "x" })).rejects.toThrow("enough");
    expect(await sandbox.exists("a.txt")).toBe(false);
  });

  test("passes on that a path leaves the workspace", async () => {
    const writing = call(tools.writeWorkspaceFile, { path: "../outside.txt", content: "x" });
    await expect(writing).rejects.toMatchObject({ kind: "not_permitted" });
  });
});

describe("list_workspace_files", () => {
  beforeEach(async () => {
    await mkdir(join(root, "src/deep"), { recursive: true });
    await writeFile(join(root, "a.txt"), "abc");
    await writeFile(join(root, "src/deep/b.txt"), "");
  });

  test("lists the root, or a directory", async () => {
    expect(await call(tools.listWorkspaceFiles, {})).toEqual({
      entries: [
        { path: "a.txt", type: "file", size_bytes: 3 },
        { path: "src", type: "directory" },
      ],
    });
    expect(await call(tools.listWorkspaceFiles, { path: "src" })).toEqual({
      entries: [{ path: "src/deep", type: "directory" }],
    });
  });

  test("lists recursively when asked to", async () => {
    const answer = (await call(tools.listWorkspaceFiles, { recursive: true })) as { entries: { path: string }[] };
    expect(answer.entries.map(({ path }) => path)).toEqual(["a.txt", "src", "src/deep", "src/deep/b.txt"]);
  });

  test("stops at its limit with a note, and not one item before it", async () => {
    await mkdir(join(root, "many"));
    await call(tools.runShellCommand, { command: `cd many && touch $(seq ${LISTED_MAX})` });
    const full = await call(tools.listWorkspaceFiles, { path: "many" });
    expect(full).toEqual({ entries: expect.any(Array) });
    await writeFile(join(root, "many", "one-more"), "");
    const cut = (await call(tools.listWorkspaceFiles, { path: "many" })) as { entries: unknown[] };
    expect(cut).toMatchObject({ truncated: true, hint: expect.stringContaining(`first ${LISTED_MAX} items`) });
    expect(cut.entries).toHaveLength(LISTED_MAX);
  });
});

describe("workspace_path_exists", () => {
  test("tells whether a path exists", async () => {
    await mkdir(join(root, "here"));
    expect(await call(tools.workspacePathExists, { path: "here" })).toEqual({ path: "here", exists: true });
    expect(await call(tools.workspacePathExists, { path: "gone" })).toEqual({ path: "gone", exists: false });
  });
});

describe("the workspace tools", () => {
  test("are seven, with their names for models", () => {
    expect(tools.WORKSPACE_TOOL_NAMES).toEqual([
      "run_shell_command",
      "read_workspace_file",
      "write_workspace_file",
      "edit_workspace_file",
      "list_workspace_files",
      "workspace_path_exists",
      "run_code",
    ]);
    expect(tools.workspaceTools.map(({ schema }) => schema.name)).toEqual(tools.WORKSPACE_TOOL_NAMES);
  });

  test.for(tools.workspaceTools)("refuse unknown arguments: $schema.name", async (tool) => {
    expect(await tool.check({ path: "a", command: "b", bogus: 1 })).toMatchObject({ ok: false });
  });

  test("report that a session has no sandbox", async () => {
    const bare = Session.fromUserMessage("Go.");
    const context = { ...contextOf(), requireSandbox: () => bare.requireSandbox() };
    for (const [tool, args] of samples()) {
      await expect(Promise.resolve(tool.execute(args, context))).rejects.toMatchObject({ code: "NO_SANDBOX" });
    }
  });

  test("report that the sandbox is closed", async () => {
    await sandbox.close();
    const context = { ...contextOf(), requireSandbox: async () => sandbox };
    for (const [tool, args] of samples()) {
      await expect(Promise.resolve(tool.execute(args, context))).rejects.toMatchObject({ kind: "sandbox_closed" });
    }
  });

  test("have the same resource key for all spellings of a path, and other keys for other paths", () => {
    const { readWorkspaceFile, writeWorkspaceFile, editWorkspaceFile, workspacePathExists, listWorkspaceFiles } = tools;
    const keys = ["src/a.txt", "./src//a.txt", "src/b/../a.txt", "src/a.txt/", "SRC/A.TXT"].flatMap((path) =>
      [readWorkspaceFile, writeWorkspaceFile, editWorkspaceFile, workspacePathExists].map((tool) =>
        tool.resourceKey?.({ path }),
      ),
    );
    expect(new Set(keys).size).toBe(1);
    expect(readWorkspaceFile.resourceKey?.({ path: "src/b.txt" })).not.toBe(keys[0]);
    expect(listWorkspaceFiles.resourceKey?.({})).toBe(listWorkspaceFiles.resourceKey?.({ path: "./" }));
  });

  test("declare which of them run alone, and which may be repeated", () => {
    const named = (choose: (tool: Tool) => unknown) =>
      tools.workspaceTools.filter(choose).map(({ schema }) => schema.name);
    expect(named((tool) => tool.exclusive)).toEqual(["run_shell_command", "run_code"]);
    expect(named((tool) => !tool.idempotent)).toEqual(["run_shell_command", "edit_workspace_file", "run_code"]);
    expect(named((tool) => tool.needsApproval !== undefined)).toEqual([]);
  });

  test("declare their effects, and that they stay in the sandbox", () => {
    expect(Object.fromEntries(tools.workspaceTools.map(({ schema, effects }) => [schema.name, effects]))).toEqual({
      run_shell_command: "commands",
      read_workspace_file: "reads",
      write_workspace_file: "writes",
      edit_workspace_file: "writes",
      list_workspace_files: "reads",
      workspace_path_exists: "reads",
      run_code: "commands",
    });
    expect(tools.workspaceTools.every(({ sandboxed }) => sandboxed === true)).toBe(true);
  });
});

function samples(): [Tool, unknown][] {
  return [
    [tools.runShellCommand, { command: "true" }],
    [tools.readWorkspaceFile, { path: "a" }],
    [tools.writeWorkspaceFile, { path: "a", content: "" }],
    [tools.editWorkspaceFile, { path: "a", old_text: "a", new_text: "b" }],
    [tools.listWorkspaceFiles, {}],
    [tools.workspacePathExists, { path: "a" }],
    [tools.runCode, { language: "javascript", code: "1" }],
  ];
}

function contextOf(): ToolContext {
  return {
    session,
    sandbox: session.sandbox,
    requireSandbox: () => session.requireSandbox(),
    signal: abort.signal,
    callId: "call",
    runId: "run",
    leaseToken: null,
  };
}

/** Calls a tool like the agent loop, from the text of the arguments. */
async function call(tool: Tool, args: object): Promise<unknown> {
  const parsed = parseArguments(JSON.stringify(args));
  const checked = parsed.ok ? await tool.check(parsed.value) : parsed;
  if (!checked.ok) throw new Error(checked.problem);
  return tool.execute(checked.value, contextOf());
}

async function untilThere(path: string): Promise<void> {
  for (;;) {
    const found = await stat(path).catch(() => null);
    if (found !== null) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
