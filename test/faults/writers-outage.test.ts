import { test } from "vitest";
import { ownServerTest } from "./redis-support.ts";
import { expectKept } from "./writers-support.ts";

test("every acknowledged entry is stored exactly once when PostgreSQL closes the connections of four processes", () =>
  expectKept("connections", "postgres", 10));

test("every acknowledged entry is stored exactly once when PostgreSQL is stopped or killed, and restarted, while four processes append", () =>
  expectKept("restarts", "postgres", 3));

ownServerTest(
  "every acknowledged entry is stored exactly once when Redis closes the connections of four processes",
  () => expectKept("connections", "redis", 10),
);

ownServerTest(
  "every acknowledged entry is stored exactly once when Redis is stopped or killed, and restarted, while four processes append",
  () => expectKept("restarts", "redis", 2),
);
