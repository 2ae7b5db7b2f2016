import { expect, test, vi } from "vitest";
import { loadAcpSdk } from "./acp-sdk.ts";

const failure = vi.hoisted(() => ({ code: "ERR_MODULE_NOT_FOUND" }));

vi.mock("@agentclientprotocol/sdk/unstable", () => {
  throw Object.assign(new Error("Cannot find the package"), { code: failure.code });
});

test("without the package of the protocol, it is said which one to install", async () => {
  await expect(loadAcpSdk()).rejects.toMatchObject({
    code: "DRIVER_MISSING",
    message: "An agent for editors needs version 2 of a package: npm install @agentclientprotocol/sdk@2.",
  });
});
