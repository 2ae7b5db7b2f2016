import { expect, test } from "vitest";
import { markPieces } from "./mark-pieces.ts";

const text = (value: string, offset?: number) => ({
  type: "text",
  value,
  ...(offset === undefined ? {} : { position: { start: { offset } } }),
});

interface Shown {
  readonly value?: string;
  readonly tagName?: string;
  readonly children?: readonly Shown[];
}

/** The texts of a tree, with `<>` around marked ones. */
const shown = ({ value, tagName, children = [] }: Shown): string => {
  const text = value ?? children.map(shown).join("");
  return tagName === "mark" ? `<${text}>` : text;
};

test("marks the own words in what is rendered, and not the same words before them", () => {
  // The source is `see [one](/one) and **one** more`, of which the last `one` is marked.
  const pieces = [
    { text: "see [one](/one) and **", own: false },
    { text: "one", own: true },
    { text: "** more", own: false },
  ];
  const link = { type: "element", tagName: "a", children: [text("one", 5)] };
  const strong = { type: "element", tagName: "strong", children: [text("one", 22)] };
  const tree = {
    type: "root",
    children: [text("see ", 0), link, text(" and ", 15), strong, text(" more", 27), text(" / not in it")],
  };
  markPieces(pieces, "own")()(tree);
  expect(shown(tree)).toBe("see one and <one> more / not in it");
});
