import { expect, test } from "vitest";
import { createBrand } from "./brand.ts";

test("has is true for marked objects only, frozen or not", () => {
  const brand = createBrand();
  const marked = { name: "a" };
  const frozen = { name: "a" };
  brand.add(marked);
  brand.add(frozen);
  Object.freeze(frozen);
  expect([marked, frozen, { ...marked }, { name: "a" }, Object.create(marked)].map((each) => brand.has(each))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});

test("a mark of one brand is not seen by another brand nor in the object's keys", () => {
  const [one, other] = [createBrand(), createBrand()];
  const marked = { name: "a" };
  one.add(marked);
  expect(other.has(marked)).toBe(false);
  expect(Reflect.ownKeys(marked)).toEqual(["name"]);
  expect(JSON.stringify(marked)).toBe('{"name":"a"}');
});
