import { commandCases } from "./sandbox/command-cases.ts";
import { endingCases } from "./sandbox/ending-cases.ts";
import { fileCases } from "./sandbox/file-cases.ts";
import { keepingCases } from "./sandbox/keeping-cases.ts";
import type { SandboxCase } from "./sandbox/sandbox-case.ts";

/** What every sandbox promises, as cases for any test runner; give each of them sandboxes of its own. */
export const sandboxCases: readonly SandboxCase[] = [...commandCases, ...endingCases, ...fileCases, ...keepingCases];
