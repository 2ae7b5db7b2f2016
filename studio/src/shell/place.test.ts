import { expect, test } from "vitest";
import { addressOf, type Place, parsePlace } from "./place.ts";

const places: readonly Place[] = [
  { page: "sessions" },
  { page: "analytics" },
  { page: "questions" },
  { page: "fleet" },
  { page: "session", id: "a", view: "talk", options: {} },
  { page: "session", id: "a/b?c#d %", view: "compare", options: { with: "x&y=z", entry: "e 1" } },
  { page: "session", id: "__proto__", view: "lineage", options: { as: "list" } },
];

test.for(places)("an address leads back to the place it was made for: %o", (place) => {
  expect(parsePlace(addressOf(place))).toEqual(place);
});

test("an address that nobody made leads to the list, or to what was said", () => {
  for (const hash of ["", "#", "#/", "#/nowhere", "#/sessions", "#/sessions/"]) {
    expect(parsePlace(hash)).toEqual({ page: "sessions" });
  }
  expect(parsePlace("#/sessions/a/unknown")).toMatchObject({ page: "session", id: "a", view: "talk" });
  expect(parsePlace("#/sessions/%E0%A4%A/talk")).toMatchObject({ id: "%E0%A4%A" });
});
