import { describe, test } from "vitest";

describe("a group", () => {
  test("never returns", () => {
    for (;;);
  });
});
