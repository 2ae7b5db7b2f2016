export { openSandboxBackend } from "./open-sandbox-backend.ts";
export type { OpenSandboxOptions } from "./opensandbox-client.ts";
