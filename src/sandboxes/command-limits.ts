import { show } from "../session/errors.ts";
import type { SandboxLimits, SandboxSpec } from "../session/sandbox/sandbox.ts";

/** The default limits of a command. */
export const LIMITS_DEFAULT: Required<SandboxLimits> = Object.freeze({
  processes: 256,
  memoryBytes: 2 * 1024 ** 3,
  fileBytes: 1024 ** 3,
  seconds: 120,
});

/** Why the limits of a spec are invalid; null if they are valid. */
export function limitsProblem(limits: unknown): string | null {
  if (typeof limits !== "object" || limits === null || Array.isArray(limits)) return "limits are not an object";
  for (const [name, value] of Object.entries(limits)) {
    if (!Object.hasOwn(LIMITS_DEFAULT, name)) {
      return `there is no limit ${show(name)}; known are ${Object.keys(LIMITS_DEFAULT).join(", ")}`;
    }
    const whole = name === "seconds" || Number.isSafeInteger(value);
    if (typeof value !== "number" || !Number.isFinite(value) || value <= 0 || !whole) {
      return `the limit ${name} is ${show(value)}, and must be a ${name === "seconds" ? "" : "whole "}number above 0`;
    }
  }
  return null;
}

/** The timeout of a command: its own or the default, but never more than the limit in the spec. */
export function commandTimeoutMs({ limits, timeoutMs }: SandboxSpec, own: number | undefined): number {
  const asked = own ?? timeoutMs ?? (limits?.seconds ?? LIMITS_DEFAULT.seconds) * 1000;
  return limits?.seconds === undefined ? asked : Math.min(asked, limits.seconds * 1000);
}
