import type { SandboxSpec } from "../../session/sandbox/sandbox.ts";
import { type Bubblewrap, findBubblewrap } from "./bubblewrap.ts";
import { hostEnvironment } from "./host-environment.ts";

/** Whether commands are to be isolated, in the present words; specs in stored logs have the older ones. */
type Wish = "auto" | "required" | "off";
const WISHES: Readonly<Record<string, Wish>> = {
  auto: "auto",
  required: "required",
  off: "off",
  none: "off",
  bubblewrap: "required",
};
/** For how long a machine without isolation is taken for one. */
const KEPT_MS = 60_000;

let missingUntil = 0;
let warned = false;

/** Whether a word is one that says how commands are isolated. */
export function isIsolationWord(word: unknown): boolean {
  return typeof word === "string" && Object.hasOwn(WISHES, word);
}

/** What isolates the commands of a spec; null when they are not. @throws {SandboxError} `unsupported` for `required` where nothing does. */
export async function findIsolation({ isolation = "auto" }: SandboxSpec): Promise<Bubblewrap | null> {
  const wish = WISHES[isolation];
  if (wish === "off") return null;
  if (wish === "required") return await findBubblewrap(hostEnvironment());
  if (performance.now() < missingUntil) return null;
  try {
    return await findBubblewrap(hostEnvironment());
  } catch (error) {
    missingUntil = performance.now() + KEPT_MS;
    warnOnce((error as Error).message);
    return null;
  }
}

/** Whether the commands of a spec are isolated, should they run at all. */
export async function isIsolated(spec: SandboxSpec): Promise<boolean> {
  const required = spec.isolation !== undefined && WISHES[spec.isolation] === "required";
  return required || (await findIsolation(spec)) !== null;
}

function warnOnce(problem: string): void {
  if (warned) return;
  warned = true;
  process.emitWarning(
    `Commands of local sandboxes are not isolated here, so they reach what their user can. ${problem} ` +
      `Set isolation: "required" to refuse them instead, or "off" to go on without this warning.`,
    { type: "SkeinWarning", code: "SKEIN_NOT_ISOLATED" },
  );
}
