import { registerSandboxBackend } from "../session/sandbox/sandbox-backends.ts";

// Backends are loaded lazily, when a session first uses them.
registerSandboxBackend("local", async () => (await import("./local/index.ts")).localBackend);
registerSandboxBackend("opensandbox", async () => (await import("./opensandbox/index.ts")).openSandboxBackend());
