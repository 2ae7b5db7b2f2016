import { expect, test, vi } from "vitest";
import { loadAcpSdk } from "./acp-sdk.ts";

vi.mock("@agentclientprotocol/sdk/unstable", () => {
  throw new Error("Cannot find the package");
});

test("without the package of the protocol, it is said which one to install", async () => {
  await expect(loadAcpSdk()).rejects.toMatchObject({
    code: "DRIVER_MISSING",
    message: "An agent for editors needs version 2 of a package: npm install @agentclientprotocol/sdk@2.",
  });
});
