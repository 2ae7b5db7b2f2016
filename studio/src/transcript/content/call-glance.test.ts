import { expect, test } from "vitest";
import { glanceOf } from "./call-glance.ts";

const call = (name: string, given: object) => ({ name, arguments: JSON.stringify(given) });
const said = (text: string, failed = false) => ({ text, failed });

test("shows an edit as a diff, and a failed one as its error", () => {
  const edit = call("edit", { path: "a.ts", old_text: "1", new_text: "2" });
  expect(glanceOf(edit, null)).toMatchObject({ kind: "edit", edit: { path: "a.ts", oldText: "1", newText: "2" } });
  expect(glanceOf(edit, said("No such text.", true))).toMatchObject({ kind: "lines", lines: ["No such text."] });
});

test("shows a command with the first lines of its output", () => {
  const run = call("bash", { command: "seq 9" });
  const printed = said("1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  expect(glanceOf(run, null)).toEqual({ kind: "lines", command: "seq 9", lines: [], more: 0 });
  expect(glanceOf(run, printed)).toMatchObject({ command: "seq 9", lines: ["1", "2", "3", "4", "5"], more: 4 });
});

test("shows a list as a table, alone or as the only list of an object", () => {
  const rows = Array.from({ length: 7 }, (_, id) => ({ id, name: `n${id}`, tags: ["x"] }));
  const table = { kind: "table", columns: ["id", "name", "tags"], more: 2 };
  const found = glanceOf(call("find", {}), said(JSON.stringify(rows)));
  expect(found).toMatchObject(table);
  expect(found?.kind === "table" && found.rows[1]).toEqual(["1", "n1", '["x"]']);
  expect(glanceOf(call("find", {}), said(JSON.stringify({ total: 7, rows })))).toMatchObject(table);
  expect(glanceOf(call("find", {}), said("[1, 2"))).toMatchObject({ kind: "lines", lines: ["[1, 2"] });
});

test("shows nothing for an empty result, and shortens long texts", () => {
  expect(glanceOf(call("look", {}), said(" \n"))).toBeNull();
  expect(glanceOf(call("look", {}), null)).toBeNull();
  const glance = glanceOf(call("look", {}), said("x".repeat(1_000_000)));
  expect(JSON.stringify(glance).length).toBeLessThan(1000);
});
