import { registerSandboxBackend } from "../session/sandbox/sandbox-backends.ts";

// Each is loaded when a session first goes there, so that a program pays only for what it uses.
registerSandboxBackend("local", async () => (await import("./local/index.ts")).localBackend);
registerSandboxBackend("opensandbox", async () => (await import("./opensandbox/index.ts")).openSandboxBackend());
