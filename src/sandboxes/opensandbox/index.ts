export { openSandboxBackend, type OpenSandboxOptions } from "./open-sandbox-backend.ts";
