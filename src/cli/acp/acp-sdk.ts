import type * as acp from "@agentclientprotocol/sdk/unstable";
import { SessionError } from "../../index.ts";

export type { acp };

/** Loads the package of the protocol. @throws {SessionError} `DRIVER_MISSING`, `DRIVER_VERSION` before version 2.4. */
export async function loadAcpSdk(): Promise<typeof acp> {
  try {
    const sdk = await import("@agentclientprotocol/sdk/unstable");
    if ("auth_status" in sdk.AGENT_METHODS) return sdk;
    throw new Error("This version has no auth/status.");
  } catch (cause) {
    // Versions before 2 have no such part, and those before 2.4 not all of its methods.
    const isMissing = (cause as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND";
    const here = isMissing ? "none is installed" : "another version is installed";
    const text = `An agent for editors needs a package, and ${here}: npm install @agentclientprotocol/sdk@^2.4.`;
    throw new SessionError(isMissing ? "DRIVER_MISSING" : "DRIVER_VERSION", text, { cause });
  }
}
