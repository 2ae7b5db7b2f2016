import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { accessCases } from "./lifecycle/access-cases.ts";
import { companionCases } from "./lifecycle/companion-cases.ts";
import { expiryCases } from "./lifecycle/expiry-cases.ts";
import { contextOn, type LifecycleCase } from "./lifecycle/lifecycle-case.ts";
import { approvalCases } from "./lifecycle/approval-cases.ts";
import { byCases } from "./lifecycle/by-cases.ts";
import { recoverCases } from "./lifecycle/recover-cases.ts";
import { requestCases } from "./lifecycle/request-cases.ts";
import { roomCases } from "./lifecycle/room-cases.ts";
import { runCases } from "./lifecycle/run-cases.ts";
import { statusCases } from "./lifecycle/status-cases.ts";
import { turnCases } from "./lifecycle/turn-cases.ts";
import { type Backend, backends } from "./store-backends.ts";

const cases: readonly LifecycleCase[] = [
  ...turnCases,
  ...statusCases,
  ...accessCases,
  ...expiryCases,
  ...companionCases,
  ...runCases,
  ...requestCases,
  ...recoverCases,
  ...approvalCases,
  ...byCases,
  ...roomCases,
];

test("gives every case a unique name", () => {
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
});

for (const backend of backends) {
  describe(`a manager on the ${backend.name} store`, () => {
    for (const { name, run } of cases) test(name, () => withStore(backend, run));
  });
}

async function withStore(backend: Backend, run: LifecycleCase["run"]): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "skein-lifecycle-"));
  const store = await backend.open(directory);
  try {
    await run(contextOn(store));
  } finally {
    await store.close();
    await rm(directory, { recursive: true, force: true });
  }
}
