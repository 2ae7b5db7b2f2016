import { expect, test } from "vitest";
import { markedPieces } from "./search-marks.ts";

const marked = (text: string, search: string): readonly string[] =>
  markedPieces(text, search)
    .filter((piece) => piece.marked)
    .map((piece) => piece.text);

test("marks words and phrases wherever they occur, in any case", () => {
  expect(marked("The Refund of order 4711 is a refund", 'refund "order 47"')).toEqual(["Refund", "order 47", "refund"]);
});

test("loses nothing of the text, whatever is marked", () => {
  for (const search of ["", "a", '"b c"', "a b re:.*", "(", "[a-", "\\"]) {
    expect(
      markedPieces("a b c (a) [a- \\", search)
        .map(({ text }) => text)
        .join(""),
    ).toBe("a b c (a) [a- \\");
  }
});

test("takes what looks like a pattern as the words that they are", () => {
  expect(marked("a.b axb", "a.b")).toEqual(["a.b"]);
});

test("marks nothing of a pattern, which could keep the page busy", () => {
  expect(marked(`${"a".repeat(60)}!`, "re:^(a+)+$")).toEqual([]);
  expect(marked("late order", "order re:l.te")).toEqual(["order"]);
});
