import { SessionError, show } from "../errors.ts";
import type { SandboxBackend } from "./sandbox.ts";

type BackendFactory = () => SandboxBackend | Promise<SandboxBackend>;

const factories = new Map<string, BackendFactory>();
const opened = new Map<string, Promise<SandboxBackend>>();

/** Makes a kind of sandbox known by a name, for `session.to(name)`. The factory is called once, when it is first needed. */
export function registerSandboxBackend(name: string, factory: BackendFactory): void {
  if (typeof name !== "string" || name === "" || typeof factory !== "function") {
    throw new SessionError("INVALID_OPTION", "A sandbox backend needs a name and a function that makes it.");
  }
  factories.set(name, factory);
  opened.delete(name);
}

/** The backend of a name. @throws {SessionError} `INVALID_OPTION` when none was registered under it. */
export async function sandboxBackend(name: string): Promise<SandboxBackend> {
  const known = opened.get(name);
  if (known !== undefined) return known;
  const factory = factories.get(name);
  if (factory === undefined) throw unknownBackend(name);
  const opening = (async () => factory())();
  opened.set(name, opening);
  // A backend that could not be loaded may be there the next time, after an install.
  opening.catch(() => opened.get(name) === opening && opened.delete(name));
  return opening;
}

/** @throws {SessionError} `INVALID_OPTION` when no backend was registered under the name. */
export function checkBackendName(name: unknown): asserts name is string {
  if (typeof name !== "string" || !factories.has(name)) throw unknownBackend(name);
}

function unknownBackend(name: unknown): SessionError {
  const known = [...factories.keys()].sort().join(", ") || "none";
  return new SessionError(
    "INVALID_OPTION",
    `There is no sandbox backend ${show(name)}; registered are: ${known}. Add yours with registerSandboxBackend.`,
  );
}
