import type { SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { type Bubblewrap, findBubblewrap } from "./bubblewrap.ts";
import { hostEnvironment } from "./host-environment.ts";

/** The isolation modes; stored logs may hold the older names in `MODES`. */
type Mode = "auto" | "required" | "off";
const MODES: Readonly<Record<string, Mode>> = {
  auto: "auto",
  required: "required",
  off: "off",
  none: "off",
  bubblewrap: "required",
};
/** How long the result that isolation is missing is cached. */
const KEPT_MS = 60_000;

let missingUntil = 0;
let warned = false;

/** Whether a value is an isolation mode. */
export function isIsolationMode(word: unknown): boolean {
  return typeof word === "string" && Object.hasOwn(MODES, word);
}

/** The program that isolates a spec's commands; null if none. @throws {SandboxError} `unsupported` if it is `required`. */
export async function findIsolation({ isolation = "auto" }: SandboxSpec): Promise<Bubblewrap | null> {
  const mode = MODES[isolation];
  if (mode === "off") return null;
  if (mode === "required") return await findBubblewrap(hostEnvironment());
  if (performance.now() < missingUntil) return null;
  try {
    return await findBubblewrap(hostEnvironment());
  } catch (error) {
    missingUntil = performance.now() + KEPT_MS;
    warnOnce((error as Error).message);
    return null;
  }
}

/** Whether the commands of a spec are isolated, if they can run. */
export async function isIsolated(spec: SandboxSpec): Promise<boolean> {
  const required = spec.isolation !== undefined && MODES[spec.isolation] === "required";
  return required || (await findIsolation(spec)) !== null;
}

function warnOnce(problem: string): void {
  if (warned) return;
  warned = true;
  process.emitWarning(
    `Commands of local sandboxes are not isolated here, so they reach what their user can. ${problem} ` +
      `Set isolation: "required" to refuse them instead, or "off" to continue without this warning.`,
    { type: "SkeinWarning", code: "SKEIN_NOT_ISOLATED" },
  );
}
