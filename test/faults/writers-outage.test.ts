import { test } from "vitest";
import { ownServerTest } from "./redis-support.ts";
import { expectKept } from "./writers-support.ts";

const TIMEOUT_MS = 120_000;

test(
  "PostgreSQL ends connections of four processes: what it acknowledged is there, once each",
  { timeout: TIMEOUT_MS },
  () => expectKept("connections", "postgres", 10),
);

test(
  "PostgreSQL is restarted in every way: four processes go on, and what was acknowledged is there, once each",
  {
    timeout: TIMEOUT_MS,
  },
  () => expectKept("restarts", "postgres", 3),
);

ownServerTest(
  "Redis ends connections of four processes: what it acknowledged is there, once each",
  () => expectKept("connections", "redis", 10),
  TIMEOUT_MS,
);

ownServerTest(
  "Redis is restarted in every way: four processes go on, and what was acknowledged is there, once each",
  () => expectKept("restarts", "redis", 2),
  TIMEOUT_MS,
);
