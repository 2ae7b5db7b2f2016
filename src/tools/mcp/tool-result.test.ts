import { expect, test } from "vitest";
import { toolResult } from "./tool-result.ts";

const text = (said: string) => ({ type: "text", text: said });

test("includes only once what a server sends as texts and as structured content", () => {
  const structuredContent = { orders: [{ number: 4711 }] };
  const once = { content: '{"orders":[{"number":4711}]}' };
  expect(toolResult({ content: [text("One order: 4711.")], structuredContent })).toEqual(once);
  expect(toolResult({ content: [text('{ "orders": [ { "number": 4711 } ] }')], structuredContent })).toEqual(once);
  expect(toolResult({ content: [], structuredContent })).toEqual(once);
});

test("unwraps a text in structured content, and keeps its lines", () => {
  const said = "one\ntwo";
  expect(toolResult({ content: [text(said)], structuredContent: { result: said } })).toEqual({ content: said });
});

test("keeps images beside structured content, and the texts of a failure instead of it", () => {
  const image = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" };
  expect(toolResult({ content: [text("A map."), image], structuredContent: { zoom: 3 } })).toEqual({
    content: [
      { type: "text", text: '{"zoom":3}' },
      { type: "image", data: "iVBORw0KGgo=", mediaType: "image/png" },
    ],
  });
  const failure = { content: [text("no such order")], structuredContent: { orders: [] }, isError: true };
  expect(toolResult(failure)).toEqual({ content: "no such order", isError: true });
});
