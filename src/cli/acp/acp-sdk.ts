import type * as acp from "@agentclientprotocol/sdk/unstable";
import { SessionError } from "../../index.ts";

/* All that Skein knows of the package of the Agent Client Protocol, with the parts of it that may still change. */
export type { acp };

/** What can be set in a session. */
export type SessionSettings = { modes: acp.SessionModeState; configOptions: acp.SessionConfigOption[] };

/** Loads the package. @throws {SessionError} `DRIVER_MISSING` when it is not installed, `DRIVER_VERSION` when it is too old. */
export async function loadAcpSdk(): Promise<typeof acp> {
  try {
    return await import("@agentclientprotocol/sdk/unstable");
  } catch (cause) {
    // Versions before 2 have no such part.
    const isOld = (cause as NodeJS.ErrnoException).code === "ERR_PACKAGE_PATH_NOT_EXPORTED";
    const text = "An agent for editors needs version 2 of a package: npm install @agentclientprotocol/sdk@2.";
    throw new SessionError(isOld ? "DRIVER_VERSION" : "DRIVER_MISSING", text, { cause });
  }
}
