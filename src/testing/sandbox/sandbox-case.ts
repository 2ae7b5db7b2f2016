import type { Sandbox, SandboxBackend, SandboxSpec } from "../../session/sandbox/sandbox.ts";

/**
 * What a case needs that not every sandbox has.
 *
 * - `shell`: commands run in a POSIX shell with the usual small programs.
 * - `process-groups`: a command can start processes that leave its process group, and `flock` shows whether they live.
 * - `links`: commands can make symbolic links that the file methods see.
 * - `modes`: files have modes that a command can set.
 * - `programs`: a program that is not there is told apart from one that fails.
 * - `snapshot`, `reattach`: as `capabilities` says.
 * - `compare`: the backend has `compareSnapshots`; where it has not, that is reason enough.
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

/** What a runner hands to a case. */
export interface SandboxCaseContext {
  readonly backend: SandboxBackend;
  /** Opens a sandbox without files; what is given is added to the runner's own spec. The runner closes it. */
  open(spec?: SandboxSpec): Promise<Sandbox>;
  /** Finds a sandbox again, with the runner's own spec and what is given added to it. The runner closes it. */
  attach(id: string, spec?: SandboxSpec): Promise<Sandbox>;
  /** The abilities that the sandboxes do not have, each with the reason. */
  readonly lacks?: Readonly<Partial<Record<SandboxAbility, string>>>;
}

/** One promise of `Sandbox`, and the program that finds out whether a sandbox keeps it. */
export interface SandboxCase {
  /** A sentence of behaviour, different from that of every other case. */
  readonly name: string;
  readonly needs?: readonly SandboxAbility[];
  /** Rejects, with an `AssertionError` where it can say what is wrong, when the promise is not kept. */
  run(context: SandboxCaseContext): Promise<void>;
}

/** Why a case says nothing about a sandbox, for a runner to show beside the case that it skips; null when it must run. */
export function sandboxSkipReason({ needs = [] }: SandboxCase, context: SandboxCaseContext): string | null {
  const { backend, lacks = {} } = context;
  const missing = needs.find((need) => lacks[need] !== undefined);
  if (missing !== undefined) return lacks[missing] ?? null;
  const cannotCompare = needs.includes("compare") && backend.compareSnapshots === undefined;
  return cannotCompare ? "the backend cannot compare snapshots" : null;
}
