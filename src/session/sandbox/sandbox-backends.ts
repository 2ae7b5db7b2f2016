import { SessionError, show } from "../errors.ts";
import type { SandboxBackend } from "./sandbox.ts";

type BackendFactory = () => SandboxBackend | Promise<SandboxBackend>;

const factories = new Map<string, BackendFactory>();
const opened = new Map<string, Promise<SandboxBackend>>();

/** Registers a kind of sandbox under a name, for `session.to(name)`. The factory is called once, on first use. */
export function registerSandboxBackend(name: string, factory: BackendFactory): void {
  if (typeof name !== "string" || name === "" || typeof factory !== "function") {
    throw new SessionError("INVALID_OPTION", "A sandbox backend needs a name and a function that makes it.");
  }
  factories.set(name, factory);
  opened.delete(name);
}

/** Gets the backend with a name. @throws {SessionError} `INVALID_OPTION` if none is registered under it. */
export async function sandboxBackend(name: string): Promise<SandboxBackend> {
  const known = opened.get(name);
  if (known !== undefined) return known;
  const factory = factories.get(name);
  if (factory === undefined) throw unknownBackend(name);
  const opening = (async () => factory())();
  opened.set(name, opening);
  // A failed load is not cached: the package may be installed before the next call.
  opening.catch(() => opened.get(name) === opening && opened.delete(name));
  return opening;
}

/** @throws {SessionError} `INVALID_OPTION` if no backend is registered under the name. */
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
