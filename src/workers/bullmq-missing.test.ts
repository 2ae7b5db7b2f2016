import { expect, test, vi } from "vitest";
import { bullmqBell } from "./bullmq-bell.ts";

const missing = vi.hoisted(() => ({ bullmq: true }));

vi.mock("bullmq", async (original) => {
  if (missing.bullmq) throw new Error("Cannot find package 'bullmq'");
  return original();
});
vi.mock("pg", () => {
  throw new Error("Cannot find package 'pg'");
});

test.for([
  { name: "bullmq", url: "redis://127.0.0.1:1" },
  { name: "pg", url: "postgres://127.0.0.1:1/none" },
])("a bell without the package $name says which one to install", async ({ name, url }) => {
  missing.bullmq = name === "bullmq";
  vi.resetModules();
  const bell = bullmqBell({ url });
  await expect(bell.ring("s", { runner: "a" })).rejects.toMatchObject({
    code: "DRIVER_MISSING",
    message: `A bell at this address needs the package ${name}: npm install ${name}.`,
  });
  await bell.close();
});
