import { describe, expect, test } from "vitest";
import { assistant, call, entryAt, user } from "../../../test/sample-log.ts";
import type { Entry } from "../log/entry.ts";
import { fileOperations } from "./file-operations.ts";

function calling(name: string, args: string): Entry {
  return entryAt(0, "a", null, { type: "message", message: assistant(null, { toolCalls: [call("c", name, args)] }) });
}
const reads = (path: string) => calling("read_workspace_file", JSON.stringify({ path }));
const writes = (path: string) => calling("write_workspace_file", JSON.stringify({ path, content: "x" }));

describe("fileOperations", () => {
  test.for(["read_workspace_file", "read_file", "read"])("treats %s as reading", (name) => {
    expect(fileOperations([calling(name, '{"path":"a"}')])).toEqual({ readFiles: ["a"], modifiedFiles: [] });
  });

  test.for(["write_workspace_file", "edit_workspace_file", "write_file", "edit_file", "write", "edit"])(
    "treats %s as changing",
    (name) => {
      expect(fileOperations([calling(name, '{"file_path":"a"}')])).toEqual({ readFiles: [], modifiedFiles: ["a"] });
    },
  );

  test("lists each file once, sorted", () => {
    expect(fileOperations([reads("b"), reads("a"), reads("b"), writes("d"), writes("c"), writes("d")])).toEqual({
      readFiles: ["a", "b"],
      modifiedFiles: ["c", "d"],
    });
  });

  test("lists a file that was read and changed as changed only, in either order", () => {
    expect(fileOperations([reads("a"), writes("a"), reads("a")])).toEqual({ readFiles: [], modifiedFiles: ["a"] });
    expect(fileOperations([writes("a")], { readFiles: ["a", "b"] })).toEqual({
      readFiles: ["b"],
      modifiedFiles: ["a"],
    });
  });

  test("adds to the files of an earlier compaction", () => {
    const earlier = { readFiles: ["r", 1, null], modifiedFiles: ["m"], mine: true };
    expect(fileOperations([reads("a")], earlier)).toEqual({ readFiles: ["a", "r"], modifiedFiles: ["m"] });
  });

  test.for([null, undefined, "text", 5, [], { readFiles: "a" }, { readFiles: null }])(
    "ignores earlier details of %j",
    (earlier) => {
      expect(fileOperations([], earlier)).toEqual({ readFiles: [], modifiedFiles: [] });
    },
  );

  test.for(["", "not json", "null", "5", '"path"', "[]", "{}", '{"path":5}', '{"path":""}', '{"path":null}'])(
    "finds no file in the arguments %j",
    (args) => {
      expect(fileOperations([calling("read", args)])).toEqual({ readFiles: [], modifiedFiles: [] });
    },
  );

  test("ignores other tools, and entries without calls", () => {
    const said = entryAt(0, "u", null, { type: "message", message: user('{"path":"a"}') });
    expect(fileOperations([calling("run_shell_command", '{"path":"a"}'), said])).toEqual({
      readFiles: [],
      modifiedFiles: [],
    });
  });
});
