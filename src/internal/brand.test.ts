import { expect, test } from "vitest";
import { createBrand } from "./brand.ts";

test("tells the objects that it was given from all others, frozen afterwards or not", () => {
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

test("keeps brands apart, and shows nothing of them", () => {
  const [one, other] = [createBrand(), createBrand()];
  const marked = { name: "a" };
  one.add(marked);
  expect(other.has(marked)).toBe(false);
  expect(Reflect.ownKeys(marked)).toEqual(["name"]);
  expect(JSON.stringify(marked)).toBe('{"name":"a"}');
});
