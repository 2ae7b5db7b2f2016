import { expect, test } from "vitest";

test.for([1, 2, 3])("passes %i times out of 3", (number) => {
  expect(number).toBeLessThan(4);
});
