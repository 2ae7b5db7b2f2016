import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OpenSandboxServer } from "../../../test/opensandbox-server.ts";
import { skipBecause } from "../../../test/skip.ts";
import type { Sandbox } from "../../session/sandbox.ts";
import { sandboxSkipReason } from "../../testing/sandbox/sandbox-case.ts";
import { sandboxCases } from "../../testing/sandbox-cases.ts";
import { openSandboxBackend } from "./index.ts";

let server: OpenSandboxServer;
beforeAll(async () => {
  server = await OpenSandboxServer.start();
});
afterAll(() => server[Symbol.asyncDispose]());

describe("the opensandbox sandbox", () => {
  for (const each of sandboxCases) {
    test.concurrent(each.name, async (context) => {
      const backend = openSandboxBackend({ domain: server.domain });
      const opened: Sandbox[] = [];
      const kept = async (opening: Promise<Sandbox>): Promise<Sandbox> => {
        const sandbox = await opening;
        opened.push(sandbox);
        return sandbox;
      };
      const cases = {
        backend,
        open: (spec = {}) => kept(backend.open(spec)),
        attach: (id: string, spec = {}) => kept(backend.attach?.(id, spec) as Promise<Sandbox>),
        lacks: { "host-files": "The files of a remote sandbox are not on this machine." },
      };
      const reason = sandboxSkipReason(each, cases);
      if (reason !== null) skipBecause(context, reason);
      try {
        await each.run(cases);
      } finally {
        await Promise.all(opened.map((sandbox) => sandbox.close()));
      }
      expect(opened.every(({ closed }) => closed)).toBe(true);
    });
  }
});
