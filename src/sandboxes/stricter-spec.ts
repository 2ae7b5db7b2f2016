import type { SandboxPlacement } from "../session/log/header.ts";
import type { SandboxLimits, SandboxSpec } from "../session/sandbox/sandbox.ts";
import { LIMITS_DEFAULT } from "./command-limits.ts";

/** Ranks of the isolation modes; stored logs may hold the older names. */
const STRICTNESS: Readonly<Record<string, number>> = { off: 0, none: 0, auto: 1, required: 2, bubblewrap: 2 };

/**
 * Combines a program's own spec with the spec that a log recorded: the stricter value of isolation, network, limits and
 * allowed paths. A log must not grant more than the program that reads it.
 *
 * - A missing value counts as its default: isolation if it works, no network, the default limits, no other paths.
 * - The working directory and variables are the recorded ones; variables of the program override them.
 */
export function stricterSpec(own: SandboxSpec, recorded: SandboxSpec): SandboxSpec {
  const { isolation: _isolation, network: _network, allowPaths: _paths, limits: _limits, ...kept } = recorded;
  const isolation = stricterIsolation(own.isolation ?? "auto", recorded.isolation ?? "auto");
  const network = stricterNetwork(own.network, recorded.network);
  const allowPaths = (recorded.allowPaths ?? []).filter((path) => own.allowPaths?.includes(path) === true);
  const limits = stricterLimits(own.limits, recorded.limits);
  const timeoutMs = stricterTimeout(own, recorded);
  return {
    ...kept,
    ...((own.env ?? recorded.env) && { env: { ...recorded.env, ...own.env } }),
    ...(isolation !== "auto" && { isolation }),
    ...(network !== undefined && { network }),
    ...(allowPaths.length > 0 && { allowPaths }),
    ...(limits !== undefined && { limits }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
}

/** The backend and spec that a program configures for its tools. */
export interface ConfiguredPlacement {
  readonly backend: string;
  /** A text means a working directory. */
  readonly spec?: SandboxSpec | string;
}

/**
 * The placement for a session's tools: the one that its log recorded, restricted by the program's own, or else the program's
 * own. Null if there is neither.
 *
 * If the program uses a remote backend, a log cannot make it act on this machine.
 */
export function stricterPlacement(
  own: ConfiguredPlacement | null,
  recorded: SandboxPlacement | null,
): SandboxPlacement | null {
  const ownSpec = specOf(own?.spec);
  const isKept = recorded !== null && (own === null || recorded.backend === own.backend || recorded.backend !== LOCAL);
  if (isKept && recorded.backend !== LOCAL) return recorded;
  if (isKept) return { ...recorded, spec: stricterSpec(ownSpec, specOf(recorded.spec)) as SandboxPlacement["spec"] };
  return own === null ? null : { backend: own.backend, spec: ownSpec as SandboxPlacement["spec"], handleId: null };
}

/** A program's own spec, restricted in isolation, network and limits by the local sandbox that a log recorded. */
export function restrictedSpec(own: SandboxSpec, recorded: SandboxPlacement | null): SandboxSpec {
  if (recorded?.backend !== LOCAL) return own;
  const { env: _env, workingDir: _directory, ...limits } = specOf(recorded.spec);
  return stricterSpec(limits, own);
}

/** The backend whose commands run on this machine. */
const LOCAL = "local";

function specOf(spec: unknown): SandboxSpec {
  if (typeof spec === "string") return { workingDir: spec };
  return typeof spec === "object" && spec !== null && !Array.isArray(spec) ? (spec as SandboxSpec) : {};
}

type Isolation = NonNullable<SandboxSpec["isolation"]>;

/** The stricter mode. An unknown one is returned, so that the backend refuses it. */
function stricterIsolation(own: Isolation, recorded: Isolation): Isolation {
  const [one, other] = [STRICTNESS[own], STRICTNESS[recorded]];
  if (other === undefined) return recorded;
  return one === undefined || one >= other ? own : recorded;
}

/** `false` is stricter than undefined: it also refuses to run without isolation. */
function stricterNetwork(own: boolean | undefined, recorded: boolean | undefined): boolean | undefined {
  if (own === false || recorded === false) return false;
  return own === true && recorded === true ? true : undefined;
}

function stricterLimits(own?: SandboxLimits, recorded?: SandboxLimits): SandboxLimits | undefined {
  if (own === undefined && recorded === undefined) return undefined;
  const limits: Record<string, number> = {};
  for (const name of Object.keys({ ...own, ...recorded }) as (keyof SandboxLimits)[]) {
    // Without `seconds` in a spec, a command may ask for more than the default time.
    const fallback = name === "seconds" ? Number.POSITIVE_INFINITY : LIMITS_DEFAULT[name];
    const values = [own?.[name] ?? fallback, recorded?.[name] ?? fallback];
    // An unknown limit, or one that is not a number, is kept, so that the backend refuses it.
    const least = Math.min(...values.map(Number));
    limits[name] = Number.isNaN(least) ? (recorded?.[name] as number) : least;
  }
  return limits;
}

/** The stricter default timeout of commands; undefined if neither spec sets one. */
function stricterTimeout(own: SandboxSpec, recorded: SandboxSpec): number | undefined {
  const timeOf = ({ timeoutMs, limits }: SandboxSpec): number | undefined =>
    timeoutMs ?? (limits?.seconds === undefined ? undefined : limits.seconds * 1000);
  const [one, other] = [timeOf(own), timeOf(recorded)];
  if (one === undefined && other === undefined) return undefined;
  const fallback = LIMITS_DEFAULT.seconds * 1000;
  return Math.min(one ?? fallback, other ?? fallback);
}
