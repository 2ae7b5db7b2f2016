import "./register-built-in.ts";

export { registerSandboxBackend } from "../session/sandbox/sandbox-backends.ts";
export { hideFromSandboxes } from "../session/sandbox/sandbox-hidden-paths.ts";
export { localBackend } from "./local/index.ts";
export { openSandboxBackend, type OpenSandboxOptions } from "./opensandbox/index.ts";
export {
  PersistentSandboxRegistry,
  type PersistentSandboxRegistryOptions,
  type RecordedSandbox,
  type SandboxRecord,
} from "./persistent-sandbox-registry.ts";
