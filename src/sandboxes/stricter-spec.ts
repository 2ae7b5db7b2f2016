import type { SandboxPlacement } from "../session/log/header.ts";
import type { SandboxLimits, SandboxSpec } from "../session/sandbox/sandbox.ts";
import { LIMITS_DEFAULT } from "./command-limits.ts";

/** How much isolation each word asks for; specs in stored logs have the older words. */
const STRICTNESS: Readonly<Record<string, number>> = { off: 0, none: 0, auto: 1, required: 2, bubblewrap: 2 };

/**
 * What a log recorded of a sandbox, with no more than a program's own spec allows: of isolation, network, limits and allowed
 * paths, the stricter of the two. A log must not widen what the program that reads it says.
 *
 * - Where a spec says nothing, its default counts: isolation where it works, no network, the default limits, no other paths.
 * - The working directory and variables are those that were recorded; the program's variables go first.
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

/** Where a program lets tools act. */
export interface OwnPlace {
  readonly backend: string;
  /** A text is the working directory. */
  readonly spec?: SandboxSpec | string;
}

/**
 * Where the tools of a session act: at the place that its log recorded, with no more than the program's own place allows, or
 * else at the program's own. Null where there is neither.
 *
 * A program whose place is on another machine never acts on this one because a log says so.
 */
export function stricterPlacement(own: OwnPlace | null, recorded: SandboxPlacement | null): SandboxPlacement | null {
  const ownSpec = specOf(own?.spec);
  const isKept = recorded !== null && (own === null || recorded.backend === own.backend || recorded.backend !== LOCAL);
  if (isKept && recorded.backend !== LOCAL) return recorded;
  if (isKept) return { ...recorded, spec: stricterSpec(ownSpec, specOf(recorded.spec)) as SandboxPlacement["spec"] };
  return own === null ? null : { backend: own.backend, spec: ownSpec as SandboxPlacement["spec"], handleId: null };
}

/** A program's own spec, with no more of isolation, network and limits than what a log recorded of a local sandbox. */
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

/** A word that nobody knows stays, so that the backend refuses it. */
function stricterIsolation(own: Isolation, recorded: Isolation): Isolation {
  const [one, other] = [STRICTNESS[own], STRICTNESS[recorded]];
  if (other === undefined) return recorded;
  return one === undefined || one >= other ? own : recorded;
}

/** `false` also refuses to run without isolation, so it is stricter than nothing. */
function stricterNetwork(own: boolean | undefined, recorded: boolean | undefined): boolean | undefined {
  if (own === false || recorded === false) return false;
  return own === true && recorded === true ? true : undefined;
}

function stricterLimits(own?: SandboxLimits, recorded?: SandboxLimits): SandboxLimits | undefined {
  if (own === undefined && recorded === undefined) return undefined;
  const limits: Record<string, number> = {};
  for (const name of Object.keys({ ...own, ...recorded }) as (keyof SandboxLimits)[]) {
    // A command may take longer than the default time where it says so, unless a spec names the time.
    const fallback = name === "seconds" ? Number.POSITIVE_INFINITY : LIMITS_DEFAULT[name];
    const values = [own?.[name] ?? fallback, recorded?.[name] ?? fallback];
    // A limit that nobody knows, or that is no number, stays as it is, so that the backend refuses it.
    const least = Math.min(...values.map(Number));
    limits[name] = Number.isNaN(least) ? (recorded?.[name] as number) : least;
  }
  return limits;
}

/** How long a command may take that names no time of its own; undefined where both leave that to the default. */
function stricterTimeout(own: SandboxSpec, recorded: SandboxSpec): number | undefined {
  const timeOf = ({ timeoutMs, limits }: SandboxSpec): number | undefined =>
    timeoutMs ?? (limits?.seconds === undefined ? undefined : limits.seconds * 1000);
  const [one, other] = [timeOf(own), timeOf(recorded)];
  if (one === undefined && other === undefined) return undefined;
  const fallback = LIMITS_DEFAULT.seconds * 1000;
  return Math.min(one ?? fallback, other ?? fallback);
}
