import type { Sandbox, SandboxBackend, SandboxSpec } from "../../session/sandbox/sandbox.ts";

/**
 * Abilities that a case needs and that not every sandbox has.
 *
 * - `shell`: commands run in a POSIX shell with the usual small programs.
 * - `process-groups`: a command can start processes that leave its process group, and `flock` shows whether they live.
 * - `links`: commands can make symbolic links that the file methods see.
 * - `modes`: files have modes that a command can set.
 * - `programs`: a missing program and one that fails have different errors.
 * - `snapshot`, `reattach`: as in `capabilities`.
 * - `compare`: the backend has `compareSnapshots`; this need not be listed in `lacks`.
 */
export type SandboxAbility =
  | "shell"
  | "process-groups"
  | "links"
  | "modes"
  | "programs"
  | "snapshot"
  | "reattach"
  | "compare";

/** The argument that a test runner passes to a case. */
export interface SandboxCaseContext {
  readonly backend: SandboxBackend;
  /** Opens an empty sandbox with the runner's spec and the given one merged. The runner closes it. */
  open(spec?: SandboxSpec): Promise<Sandbox>;
  /** Reattaches to a sandbox by its id, with the runner's spec and the given one merged. The runner closes it. */
  attach(id: string, spec?: SandboxSpec): Promise<Sandbox>;
  /** Abilities that the sandboxes do not have, each with a reason. */
  readonly lacks?: Readonly<Partial<Record<SandboxAbility, string>>>;
}

/** One conformance case of `Sandbox`: a promise of the contract, and a test of it. */
export interface SandboxCase {
  /** A unique sentence of behaviour. */
  readonly name: string;
  readonly needs?: readonly SandboxAbility[];
  /** Rejects if the sandbox does not keep the promise, mostly with an `AssertionError`. */
  run(context: SandboxCaseContext): Promise<void>;
}

/** Why a case must be skipped for a sandbox, for a test runner to show; null if it must run. */
export function sandboxSkipReason({ needs = [] }: SandboxCase, context: SandboxCaseContext): string | null {
  const { backend, lacks = {} } = context;
  const missing = needs.find((need) => lacks[need] !== undefined);
  if (missing !== undefined) return lacks[missing] ?? null;
  const cannotCompare = needs.includes("compare") && backend.compareSnapshots === undefined;
  return cannotCompare ? "the backend cannot compare snapshots" : null;
}
