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

test.for(routes)("parses the URL of a route back to the route: %o", (route) => {
  expect(parseRoute(addressOf(route))).toEqual(route);
});

test("an unknown URL leads to the list, or to the transcript", () => {
  for (const hash of ["", "#", "#/", "#/nowhere", "#/sessions", "#/sessions/"]) {
    expect(parseRoute(hash)).toEqual({ page: "sessions" });
  }
  expect(parseRoute("#/sessions/a/unknown")).toMatchObject({ page: "session", id: "a", view: "talk" });
  expect(parseRoute("#/sessions/%E0%A4%A/talk")).toMatchObject({ id: "%E0%A4%A" });
});
