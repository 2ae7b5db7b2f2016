import { test } from "vitest";

await new Promise(() => setInterval(() => {}, 1000));

test("is never collected", () => {});
