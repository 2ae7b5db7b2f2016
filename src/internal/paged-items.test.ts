import { expect, test } from "vitest";
import { PagedItems } from "./paged-items.ts";

test("yields the items of all pages in order, also to concurrent calls of next", async () => {
  const items = new PagedItems(pages([["1", "2"], ["3"]]), Number);
  const results = await Promise.all(Array.from({ length: 5 }, () => items.next()));
  expect(results.map(({ value }) => value)).toEqual([1, 2, 3, undefined, undefined]);
});

test("return closes the iterator of the pages and ends the iteration", async () => {
  let ended = false;
  const items = new PagedItems(
    pages([["1", "2"], ["3"]], () => {
      ended = true;
    }),
    Number,
  );
  for await (const _first of items) break;
  expect(ended).toBe(true);
  expect(await items.next()).toEqual({ done: true, value: undefined });
});

test("rejects with the error of reading a page or an item", async () => {
  const failing = new PagedItems(
    (async function* () {
      yield ["1"];
      throw new Error("no page");
    })(),
    Number,
  );
  expect((await failing.next()).value).toBe(1);
  await expect(failing.next()).rejects.toThrow("no page");
  const unreadable = new PagedItems(pages([["{"]]), (text) => JSON.parse(text) as unknown);
  await expect(unreadable.next()).rejects.toThrow(SyntaxError);
});

async function* pages(all: readonly (readonly string[])[], end = (): void => {}): AsyncGenerator<readonly string[]> {
  try {
    yield* all;
  } finally {
    end();
  }
}
