import { expect, test } from "vitest";
import { addressOf, type Route, parseRoute } from "./route.ts";

const routes: readonly Route[] = [
  { page: "sessions" },
  { page: "analytics" },
  { page: "questions" },
  { page: "fleet" },
  { page: "session", id: "a", view: "talk", options: {} },
  { page: "session", id: "a/b?c#d %", view: "compare", options: { with: "x&y=z", entry: "e 1" } },
  { page: "session", id: "__proto__", view: "lineage", options: { as: "list" } },
];

test.for(routes)("an address leads back to the route it was made for: %o", (route) => {
  expect(parseRoute(addressOf(route))).toEqual(route);
});

test("an address that nobody made leads to the list, or to what was said", () => {
  for (const hash of ["", "#", "#/", "#/nowhere", "#/sessions", "#/sessions/"]) {
    expect(parseRoute(hash)).toEqual({ page: "sessions" });
  }
  expect(parseRoute("#/sessions/a/unknown")).toMatchObject({ page: "session", id: "a", view: "talk" });
  expect(parseRoute("#/sessions/%E0%A4%A/talk")).toMatchObject({ id: "%E0%A4%A" });
});
