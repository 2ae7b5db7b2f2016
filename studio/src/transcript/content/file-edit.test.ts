import { expect, test } from "vitest";
import { argumentsOf, fileEditOf } from "./file-edit.ts";

const call = (name: string, value: unknown): { name: string; arguments: string } => ({
  name,
  arguments: JSON.stringify(value),
});

test("knows an edit by its old and its new text", () => {
  expect(fileEditOf(call("edit_workspace_file", { path: "a.txt", old_text: "a", new_text: "b" }))).toEqual({
    path: "a.txt",
    oldText: "a",
    newText: "b",
    whole: false,
  });
});

test("knows a written file by its tool's name, and takes no other tool for one", () => {
  const given = { path: "a.txt", content: "hi" };
  expect(fileEditOf(call("write_workspace_file", given))).toMatchObject({ newText: "hi", whole: true });
  expect(fileEditOf(call("read_workspace_file", given))).toBeNull();
});

test("makes nothing of arguments that are not whole or no object", () => {
  expect(argumentsOf({ arguments: '{"path": "a' })).toBeNull();
  expect(argumentsOf({ arguments: "[1]" })).toBeNull();
  expect(fileEditOf(call("write_workspace_file", null))).toBeNull();
});
