import { expect, test } from "vitest";
import { fromFirstMatch, markedPieces } from "./search-marks.ts";

const marked = (text: string, search: string): readonly string[] =>
  markedPieces(text, search)
    .filter((piece) => piece.marked)
    .map((piece) => piece.text);

test("marks words and phrases wherever they occur, ignoring case", () => {
  expect(marked("The Refund of order 4711 is a refund", 'refund "order 47"')).toEqual(["Refund", "order 47", "refund"]);
});

test("keeps the whole text, whatever is marked", () => {
  for (const search of ["", "a", '"b c"', "a b re:.*", "(", "[a-", "\\"]) {
    expect(
      markedPieces("a b c (a) [a- \\", search)
        .map(({ text }) => text)
        .join(""),
    ).toBe("a b c (a) [a- \\");
  }
});

test("treats pattern characters in words literally", () => {
  expect(marked("a.b axb", "a.b")).toEqual(["a.b"]);
});

test("marks no matches of a pattern, which could block the page", () => {
  expect(marked(`${"a".repeat(60)}!`, "re:^(a+)+$")).toEqual([]);
  expect(marked("late order", "order re:l.te")).toEqual(["order"]);
});

test("a preview begins shortly before its first match", () => {
  const text = `${"a long path/".repeat(10)}the plan of it`;
  expect(fromFirstMatch(text, "plan")).toMatch(/^….{20,24}plan of it$/);
  expect(fromFirstMatch("Plan a trip", "trip")).toBe("Plan a trip");
  expect(fromFirstMatch(text, "absent")).toBe(text);
  expect(fromFirstMatch(text, "re:plan")).toBe(text);
});
