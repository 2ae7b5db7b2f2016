import fc from "fast-check";
import { expect, test } from "vitest";
import { toolName } from "./tool-name.ts";

test("keeps a name that every provider accepts", () => {
  expect(toolName("", "find-order_2")).toBe("find-order_2");
  expect(toolName("github_", "list_issues")).toBe("github_list_issues");
});

test("converts every text to a valid name, and different texts to different names", () => {
  const text = fc.oneof(fc.string({ unit: "binary", maxLength: 90 }), fc.constantFrom("a b", "a.b", "a/b", "a:b"));
  fc.assert(
    fc.property(fc.uniqueArray(text, { minLength: 1, maxLength: 8 }), (names) => {
      const given = names.map((name) => toolName("", name));
      for (const name of given) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      expect(new Set(given).size).toBe(names.length);
    }),
    { numRuns: 200 },
  );
});

test("converts a text to the same name each time, whatever other tools exist", () => {
  expect(toolName("", "wetter für morgen")).toBe(toolName("", "wetter für morgen"));
  expect(toolName("", "wetter für morgen")).toMatch(/^wetter_fu_r_morgen_[0-9a-f]{8}$/);
});
