import { expect, test } from "vitest";
import { argumentsOf, fileEditOf } from "./file-edit.ts";

const call = (name: string, value: unknown): { name: string; arguments: string } => ({
  name,
  arguments: JSON.stringify(value),
});

test("detects an edit by its old and new text", () => {
  expect(fileEditOf(call("edit_workspace_file", { path: "a.txt", old_text: "a", new_text: "b" }))).toEqual({
    path: "a.txt",
    oldText: "a",
    newText: "b",
    whole: false,
  });
});

test("detects a written file by the name of the tool, and no other tool", () => {
  const given = { path: "a.txt", content: "hi" };
  expect(fileEditOf(call("write_workspace_file", given))).toMatchObject({ newText: "hi", whole: true });
  expect(fileEditOf(call("read_workspace_file", given))).toBeNull();
});

test("returns null for incomplete arguments, and for those that are not an object", () => {
  expect(argumentsOf({ arguments: '{"path": "a' })).toBeNull();
  expect(argumentsOf({ arguments: "[1]" })).toBeNull();
  expect(fileEditOf(call("write_workspace_file", null))).toBeNull();
});
