import { expect, test } from "vitest";
import { ansiPieces } from "./ansi-text.ts";

const ESC = "\u001b";

test("splits terminal output at its colours, and leaves other escape sequences in the text", () => {
  expect(ansiPieces(`a ${ESC}[1;31mred${ESC}[0m${ESC}[38;5;200mx${ESC}[39my${ESC}]8;;https://a.example`)).toEqual([
    { text: "a ", style: [] },
    { text: "red", style: ["bold", "red"] },
    { text: "x", style: [] },
    { text: `y${ESC}]8;;https://a.example`, style: [] },
  ]);
});

test("gives up styles, not text, for output with very many of them", () => {
  const pieces = ansiPieces(`${ESC}[32mx${ESC}[0m`.repeat(20_000));
  expect(pieces).toEqual([{ text: "x".repeat(20_000), style: [] }]);
});
