import { commandCases } from "./sandbox/command-cases.ts";
import { endingCases } from "./sandbox/ending-cases.ts";
import { fileCases } from "./sandbox/file-cases.ts";
import { snapshotCases } from "./sandbox/snapshot-cases.ts";
import type { SandboxCase } from "./sandbox/sandbox-case.ts";

/** The conformance cases of `Sandbox`, for any test runner. Each needs its own sandboxes. */
export const sandboxCases: readonly SandboxCase[] = [...commandCases, ...endingCases, ...fileCases, ...snapshotCases];
