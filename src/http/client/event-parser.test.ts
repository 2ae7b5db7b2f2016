import fc from "fast-check";
import { expect, test } from "vitest";
import { EventParser } from "./event-parser.ts";

const text =
  '\ufeffretry: 1000\n\nid: 7\n\nid: 8\nevent: entry\ndata: {"a":1}\n\n:\n\ndata: one\r\ndata:two\r\n\r\nid:9\rdata\r\r';
const parsed = [
  { id: "7", type: "message", data: null },
  { id: "8", type: "entry", data: '{"a":1}' },
  { id: "8", type: "message", data: "one\ntwo" },
  { id: "9", type: "message", data: "" },
];

test("finds the same events however the text is divided into chunks", () => {
  // The last line ending is complete only when another character follows.
  const whole = `${text}:`;
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 0, max: whole.length })), (cuts) => {
      const parser = new EventParser();
      const places = [0, ...cuts.sort((a, b) => a - b), whole.length];
      const found = places.slice(1).flatMap((end, index) => parser.push(whole.slice(places[index], end)));
      expect(found).toEqual(parsed);
    }),
  );
});

test("ignores an incomplete event at the end of the stream", () => {
  expect(new EventParser().push("id: 1\ndata: whole\n\nid: 2\ndata: half\n")).toEqual([
    { id: "1", type: "message", data: "whole" },
  ]);
});
