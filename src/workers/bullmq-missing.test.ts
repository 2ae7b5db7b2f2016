import { expect, test, vi } from "vitest";
import { bullmqQueue } from "./bullmq-queue.ts";

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
])("a queue without the package $name says which one to install", async ({ name, url }) => {
  missing.bullmq = name === "bullmq";
  vi.resetModules();
  const queue = bullmqQueue({ url });
  await expect(queue.notify("s", { runner: "a" })).rejects.toMatchObject({
    code: "DRIVER_MISSING",
    message: `A queue at this address needs the package ${name}: npm install ${name}.`,
  });
  await queue.close();
});
