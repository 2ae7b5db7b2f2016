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
  /** Whether its cases wait more than they work, and so may run side by side. */
  readonly remote?: boolean;
}

const openSandbox = await OpenSandboxServer.start();

/** Every kind of sandbox there is. */
const kinds: readonly Kind[] = [
  { name: "local", backend: localBackend, spec: { isolation: "off" } },
  { name: "local, isolated", backend: localBackend, spec: { isolation: "required" } },
  { name: "opensandbox", backend: openSandboxBackend({ domain: openSandbox.domain }), spec: {}, remote: true },
];

let home: string;

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), "skein-sandboxes-")));
  vi.stubEnv("SKEIN_HOME", home);
});

afterAll(async () => {
  vi.unstubAllEnvs();
  await openSandbox[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

test("gives every case a name of its own", () => {
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
  const reason = sandboxSkipReason(sandboxCase, context) ?? (await missingIsolation(backend, spec));
  if (reason !== null) skipBecause(test, reason);
  try {
    await sandboxCase.run(context);
  } finally {
    await Promise.all(opened.map((sandbox) => sandbox.close()));
  }
}

/** Why the machine has no such sandboxes; null where it has. Any other failure is left to the case. */
async function missingIsolation(backend: SandboxBackend, spec: SandboxSpec): Promise<string | null> {
  if (spec.isolation !== "required") return null;
  try {
    await (await backend.open(spec)).close();
    return null;
  } catch (error) {
    if (!(error instanceof SandboxError) || error.kind !== "unsupported") return null;
    return "bubblewrap is not installed, or does not work, on this machine";
  }
}
