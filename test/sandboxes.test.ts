import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, type TestContext, test, vi } from "vitest";
import { localBackend } from "../src/sandboxes/local/index.ts";
import { openSandboxBackend } from "../src/sandboxes/opensandbox/index.ts";
import { type Sandbox, type SandboxBackend, SandboxError, type SandboxSpec } from "../src/session/sandbox/sandbox.ts";
import { type SandboxCase, type SandboxCaseContext, sandboxCases, sandboxSkipReason } from "../src/testing/index.ts";
import { OpenSandboxServer } from "./opensandbox-server.ts";
import { skipBecause } from "./skip.ts";

/** A kind of sandbox. */
interface Kind {
  readonly name: string;
  readonly backend: SandboxBackend;
  readonly spec: SandboxSpec;
  readonly lacks?: NonNullable<SandboxCaseContext["lacks"]>;
  /** Whether its cases mostly wait, and may therefore run concurrently. */
  readonly remote?: boolean;
}

const openSandbox = await OpenSandboxServer.start();

/** All kinds of sandboxes. */
const kinds: readonly Kind[] = [
  { name: "local", backend: localBackend, spec: { isolation: "off" } },
  { name: "local, isolated", backend: localBackend, spec: { isolation: "required" } },
  { name: "opensandbox", backend: openSandboxBackend({ domain: openSandbox.domain }), spec: {}, remote: true },
];

let home: string;
/** Why the machine cannot isolate sandboxes; null if it can. */
let isolationMissing: string | null;

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), "skein-sandboxes-")));
  vi.stubEnv("SKEIN_HOME", home);
  isolationMissing = await missingIsolation();
});

afterAll(async () => {
  vi.unstubAllEnvs();
  await openSandbox[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

test("every case has a unique name", () => {
  expect(new Set(sandboxCases.map(({ name }) => name)).size).toBe(sandboxCases.length);
});

for (const kind of kinds) {
  describe(`the sandbox "${kind.name}"`, () => {
    const add = kind.remote === true ? test.concurrent : test;
    for (const sandboxCase of sandboxCases) add(sandboxCase.name, (context) => runCase(kind, sandboxCase, context));
  });
}

async function runCase({ backend, spec, lacks }: Kind, sandboxCase: SandboxCase, test: TestContext): Promise<void> {
  const opened: Sandbox[] = [];
  const keep = (sandbox: Sandbox): Sandbox => {
    opened.push(sandbox);
    return sandbox;
  };
  const context: SandboxCaseContext = {
    backend,
    open: async (more) => keep(await backend.open({ ...spec, ...more })),
    attach: async (id, more) => {
      if (backend.attach === undefined)
        throw new Error("The backend has no attach; name reattach among what it lacks.");
      return keep(await backend.attach(id, { ...spec, ...more }));
    },
    ...(lacks === undefined ? {} : { lacks }),
  };
  const reason = sandboxSkipReason(sandboxCase, context) ?? (spec.isolation === "required" ? isolationMissing : null);
  if (reason !== null) skipBecause(test, reason);
  try {
    await sandboxCase.run(context);
  } finally {
    await Promise.all(opened.map((sandbox) => sandbox.close()));
  }
}

/** Tests once for all cases whether isolation works; other failures are left to the cases. */
async function missingIsolation(): Promise<string | null> {
  try {
    await (await localBackend.open({ isolation: "required" })).close();
    return null;
  } catch (error) {
    if (!(error instanceof SandboxError) || error.kind !== "unsupported") return null;
    return "bubblewrap is not installed, or does not work, on this machine";
  }
}
