import { constants } from "node:os";
import { show } from "../../session/errors.ts";
import { type ExecResult, SandboxError, type SandboxLimits, type SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { LIMITS_DEFAULT } from "../command-limits.ts";
import { type Bubblewrap, bubblewrapArguments } from "./bubblewrap.ts";
import type { Confinement } from "./confinement.ts";
import { ControlGroup, findControlGroups } from "./control-group.ts";
import { findProgram } from "./find-program.ts";
import { withResourceLimits } from "./resource-limits.ts";

/** Bubblewrap is two processes itself: one outside that waits, and the first one inside. */
const BUBBLEWRAP_PROCESSES = 2;
const FILE_TOO_LARGE = 128 + constants.signals.SIGXFSZ;

/** What holds the commands of a sandbox. */
export interface Container {
  readonly spec: SandboxSpec;
  readonly confinement: Confinement;
  /** The program that isolates commands, where they are isolated. */
  readonly bubblewrap: Bubblewrap | null;
}

/** A command with all that holds it, ready to be started. Disposed of when it has ended. */
export class ContainedCommand implements AsyncDisposable {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly #limits: Required<SandboxLimits>;
  readonly #group: ControlGroup | null;

  constructor(list: readonly [string, ...string[]], limits: Required<SandboxLimits>, group: ControlGroup | null) {
    [this.program, ...this.arguments] = list;
    this.#limits = limits;
    this.#group = group;
  }

  /** What it came to. @throws {SandboxError} `limit_exceeded` when it failed, and is known to have wanted too much. */
  async check(result: ExecResult, name: string): Promise<ExecResult> {
    if (result.exitCode === 0) return result;
    const limit = result.exitCode === FILE_TOO_LARGE ? "fileBytes" : ((await this.#group?.exceeded()) ?? null);
    if (limit === null) return result;
    throw new SandboxError(
      "limit_exceeded",
      `The command ${show(name)} went beyond the limit ${limit} of ${this.#limits[limit]}; raise it in limits of the spec.`,
      { output: { stdout: result.stdout, stderr: result.stderr } },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#group?.remove();
  }
}

/** Puts a command into what holds it: limits of its own, isolation, and a group with limits for all of it. */
export async function containCommand(
  list: readonly [string, ...string[]],
  { spec, confinement, bubblewrap }: Container,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<ContainedCommand> {
  // What starts it would answer with an exit code of its own, which looks like the command's.
  if ((await findProgram(list[0], env["PATH"] ?? "", cwd)) === null) {
    throw new SandboxError("os_error", `The command could not be started: there is no program ${show(list[0])}.`);
  }
  const limits = { ...LIMITS_DEFAULT, ...spec.limits };
  const isolated = bubblewrap !== null;
  const hierarchies = await findControlGroups();
  const making = hierarchies && ControlGroup.make(hierarchies, limits, isolated ? BUBBLEWRAP_PROCESSES : 0);
  const group = (await making?.catch(() => null)) ?? null;
  try {
    let held = withResourceLimits(list, limits, { grouped: group !== null, isolated });
    if (bubblewrap !== null) {
      const { root, allowed } = confinement;
      const hidden = await confinement.hidden();
      const isolation = { root, allowed, hidden, network: spec.network === true, sizeBytes: limits.memoryBytes, env };
      held = [bubblewrap.program, ...(await bubblewrapArguments(bubblewrap, isolation, cwd)), ...held];
    }
    return new ContainedCommand(group?.wrap(held) ?? (held as readonly [string, ...string[]]), limits, group);
  } catch (error) {
    await group?.remove();
    throw error;
  }
}
