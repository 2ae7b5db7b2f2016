import { expect, test } from "vitest";
import { outputOf } from "./call-output.ts";

const call = (name: string, given: object) => ({ name, arguments: JSON.stringify(given) });
const said = (value: unknown, failed = false) => ({
  text: typeof value === "string" ? value : JSON.stringify(value),
  failed,
});

test("shows an edit as a diff, and a failed one as its error", () => {
  const edit = call("edit", { path: "a.ts", old_text: "1", new_text: "2" });
  expect(outputOf(edit, null)).toMatchObject({ kind: "edit", edit: { path: "a.ts", oldText: "1", newText: "2" } });
  expect(outputOf(edit, said({ path: "a.ts", replacements: 2, first_line: 7 }))).toMatchObject({
    kind: "edit",
    note: "Changed in 2 places, from line 7 on.",
  });
  const refused = { ok: false, error_kind: "invalid_arguments", message: "No such text." };
  expect(outputOf(edit, said(refused, true))).toMatchObject({ kind: "text", text: "No such text.", failed: true });
});

test("shows the result of our commands and programs as terminal output, not as JSON", () => {
  const ran = said({ exit_code: 1, stdout: "one\n", stderr: "bad\n", truncated: true });
  const terminal = { kind: "terminal", stdout: "one\n", stderr: "bad\n", exitCode: 1, note: /shortened/ };
  expect(outputOf(call("run_shell_command", { command: "make" }), ran)).toMatchObject({
    ...terminal,
    note: expect.stringMatching(terminal.note),
    command: "make",
  });
  // Of a result whose call is not shown, only the output is known.
  expect(outputOf(call("run_shell_command", {}), ran)).toMatchObject({ kind: "terminal", command: null, exitCode: 1 });
  const program = { language: "python", code: "print(1)" };
  expect(outputOf(call("run_code", program), ran)).toMatchObject({ command: "print(1)", language: "python" });
  expect(outputOf(call("bash", { command: "seq 9" }), said("1\n2\n"))).toMatchObject({
    command: "seq 9",
    stdout: "1\n2\n",
    exitCode: null,
  });
  expect(outputOf(call("bash", { command: "seq 9" }), null)).toMatchObject({ command: "seq 9", stdout: "" });
});

test("shows a file under its name, with the numbers of its lines and without the note of the tool", () => {
  const read = call("read_workspace_file", { path: "a.ts", start_line: 3 });
  expect(outputOf(read, said("three\nfour\n[Lines 3 to 4 of 9. Read on with start_line 5.]"))).toEqual({
    kind: "file",
    failed: false,
    path: "a.ts",
    firstLine: 3,
    text: "three\nfour",
    note: "Lines 3 to 4 of 9. Read on with start_line 5.",
  });
  const numbered = "  7\tseven\n  8\t\n  9\t1\tnine\n\n<system-reminder>Be careful.</system-reminder>";
  expect(outputOf(call("Read", { file_path: "/a.ts", offset: 7 }), said(numbered))).toEqual({
    kind: "file",
    failed: false,
    path: "/a.ts",
    firstLine: 7,
    text: "seven\n\n1\tnine",
    note: "<system-reminder>Be careful.</system-reminder>",
  });
  expect(outputOf(call("Read", { file_path: "/a.ts" }), said("1→one\n"))).toMatchObject({ text: "one", note: null });
  expect(outputOf(call("Read", { file_path: "/a" }), said("7 seas"))).toMatchObject({ text: "7 seas", firstLine: 1 });
  // Other tools return a file as it is.
  expect(outputOf(call("read_workspace_file", { path: "a.tsv" }), said("1\tone"))).toMatchObject({ text: "1\tone" });
  expect(outputOf(call("workspace_path_exists", { path: "b" }), said({ path: "b", exists: false }))).toMatchObject({
    text: "b does not exist.",
  });
});

test("shows a list as a table, alone or as the only list of an object, and files with their sizes", () => {
  const rows = Array.from({ length: 7 }, (_, id) => ({ id, name: `n${id}`, tags: ["x"] }));
  const found = outputOf(call("find", {}), said(rows));
  expect(found).toMatchObject({ kind: "table", columns: ["id", "name", "tags"] });
  expect(found?.kind === "table" && [found.rows.length, found.rows[1]]).toEqual([7, ["1", "n1", '["x"]']]);
  expect(outputOf(call("find", {}), said({ total: 7, rows }))).toMatchObject({ kind: "table" });
  expect(outputOf(call("find", {}), said("[1, 2"))).toMatchObject({ kind: "text", text: "[1, 2" });
  const entries = [
    { path: "src", type: "directory" },
    { path: "a.ts", type: "file", size_bytes: 1500 },
  ];
  expect(outputOf(call("list_workspace_files", {}), said({ entries }))).toMatchObject({
    kind: "table",
    rows: [
      ["src/", ""],
      ["a.ts", "1.5 KB"],
    ],
  });
});

test("shows nothing for an empty result, and does not parse a huge one", () => {
  expect(outputOf(call("look", {}), said(" \n"))).toBeNull();
  expect(outputOf(call("look", {}), null)).toBeNull();
  const huge = `[${'{"a":1},'.repeat(200_000)}{"a":1}]`;
  expect(outputOf(call("look", {}), said(huge))).toMatchObject({ kind: "text" });
});
