import { test } from "vitest";
import { ownServerTest } from "./redis-support.ts";
import { expectKept } from "./writers-support.ts";

const TIMEOUT_MS = 120_000;

test(
  "every acknowledged entry is stored exactly once when PostgreSQL closes the connections of four processes",
  { timeout: TIMEOUT_MS },
  () => expectKept("connections", "postgres", 10),
);

test(
  "every acknowledged entry is stored exactly once when PostgreSQL is stopped or killed, and restarted, while four processes append",
  {
    timeout: TIMEOUT_MS,
  },
  () => expectKept("restarts", "postgres", 3),
);

ownServerTest(
  "every acknowledged entry is stored exactly once when Redis closes the connections of four processes",
  () => expectKept("connections", "redis", 10),
  TIMEOUT_MS,
);

ownServerTest(
  "every acknowledged entry is stored exactly once when Redis is stopped or killed, and restarted, while four processes append",
  () => expectKept("restarts", "redis", 2),
  TIMEOUT_MS,
);
