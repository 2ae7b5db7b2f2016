import { describe, expect, test } from "vitest";
import type { SandboxSpec } from "../session/sandbox/sandbox.ts";
import { restrictedSpec, stricterPlacement, stricterSpec } from "./stricter-spec.ts";

describe("a sandbox that a log recorded", () => {
  test.for<[name: string, own: SandboxSpec, recorded: SandboxSpec, expected: SandboxSpec]>([
    ["isolation that is off", {}, { isolation: "off" }, {}],
    ["an older word for off", {}, { isolation: "none" }, {}],
    [
      "isolation that is weaker than required",
      { isolation: "required" },
      { isolation: "auto" },
      { isolation: "required" },
    ],
    ["isolation that is stricter", {}, { isolation: "bubblewrap" }, { isolation: "bubblewrap" }],
    ["isolation that both switch off", { isolation: "off" }, { isolation: "off" }, { isolation: "off" }],
    ["a network", {}, { network: true }, {}],
    ["a network that both allow", { network: true }, { network: true }, { network: true }],
    ["a network that the program forbids", { network: false }, { network: true }, { network: false }],
    ["a network that it forbids itself", { network: true }, { network: false }, { network: false }],
    ["a higher limit than the default", {}, { limits: { processes: 10_000 } }, { limits: { processes: 256 } }],
    ["a lower limit", {}, { limits: { processes: 3 } }, { limits: { processes: 3 } }],
    ["limits of both", { limits: { memoryBytes: 7 } }, { limits: { memoryBytes: 9 } }, { limits: { memoryBytes: 7 } }],
    ["more time", {}, { limits: { seconds: 600 } }, { limits: { seconds: 600 }, timeoutMs: 120_000 }],
    ["a longer default time", { timeoutMs: 5 }, { timeoutMs: 9 }, { timeoutMs: 5 }],
    ["paths beside its root", {}, { allowPaths: ["/"] }, {}],
    ["paths that both allow", { allowPaths: ["/a", "/b"] }, { allowPaths: ["/b", "/c"] }, { allowPaths: ["/b"] }],
    ["a directory and variables", {}, { workingDir: "/w", env: { A: "1" } }, { workingDir: "/w", env: { A: "1" } }],
  ])("never grants more than the program's own spec: %s", ([, own, recorded, expected]) => {
    expect(stricterSpec(own, recorded)).toEqual(expected);
  });

  test("keeps its directory and its handle, and is ignored by a program with a remote backend", () => {
    const recorded = { backend: "local", spec: { workingDir: "/w", isolation: "off" }, handleId: "h" };
    expect(stricterPlacement({ backend: "local", spec: "/own" }, recorded)).toEqual({
      backend: "local",
      spec: { workingDir: "/w" },
      handleId: "h",
    });
    expect(stricterPlacement(null, recorded)?.spec).toEqual({ workingDir: "/w" });
    expect(stricterPlacement({ backend: "opensandbox" }, recorded)).toEqual({
      backend: "opensandbox",
      spec: {},
      handleId: null,
    });
    const remote = { backend: "opensandbox", spec: { image: "x" }, handleId: "r" };
    expect(stricterPlacement({ backend: "local", spec: "/own" }, remote)).toEqual(remote);
    expect(stricterPlacement({ backend: "local", spec: "/own" }, null)?.spec).toEqual({ workingDir: "/own" });
    expect(stricterPlacement(null, null)).toBeNull();
  });

  test("restricts a program's own placement, and changes nothing else of it", () => {
    const spec = { workingDir: "/w", isolation: "required", network: true, env: { A: "1" }, limits: { fileBytes: 1 } };
    const recorded = { backend: "local", spec, handleId: null };
    expect(restrictedSpec({ workingDir: "/own" }, recorded)).toEqual({
      workingDir: "/own",
      isolation: "required",
      limits: { fileBytes: 1 },
    });
    expect(restrictedSpec({ workingDir: "/own" }, null)).toEqual({ workingDir: "/own" });
  });
});
